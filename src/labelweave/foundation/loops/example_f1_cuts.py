"""The best cut of every label for the mean F1 score of the rows, one label after the other."""

from __future__ import annotations

from labelweave.foundation.loops.compiling import njit


@njit(nogil=True, cache=True)
def move_cuts(starts, rows, scores, shares, positives, above, hits, labels, weights):
    """Move labels to cuts that raise the weighted sum of the rows' F1 scores; the others stay fixed.

    Label l has ``rows[starts[l]:starts[l + 1]]``, of falling ``scores``, the first ``above[l]`` of these
    above its threshold, ``positives[l]`` of all positive, as far as their ``shares`` say.  ``hits`` has 2
    hits of every row, ``labels`` its predicted and positive labels.  Only below a positive row, and above
    all rows, can a cut be best.
    """
    for label in range(len(above)):
        start, stop, now = starts[label], starts[label + 1], above[label]
        gain, best_gain, present, best = 0.0, 0.0, 0.0, 0
        left, is_fresh = positives[label], False
        for place in range(start, stop):
            count = place - start + 1
            if left == 0 and not is_fresh and count > now:
                break
            row, twice = rows[place], 2.0 * shares[place]
            hit, total = hits[row], labels[row]
            if count <= now:
                hit, total = hit - twice, total - 1.0
            before = hit / total if total > 0 else 0.0
            gain += weights[row] * ((hit + twice) / (total + 1.0) - before)
            if twice > 0:
                left -= 1
                is_fresh = True
            if count == now:
                present = gain
            if is_fresh and (place + 1 == stop or scores[place] > scores[place + 1]):
                is_fresh = False
                if gain > best_gain:
                    best_gain, best = gain, count
        if best_gain > present:
            sign = 1.0 if best > now else -1.0
            for place in range(start + min(best, now), start + max(best, now)):
                row = rows[place]
                labels[row] += sign
                hits[row] += 2.0 * shares[place] * sign
            above[label] = best
