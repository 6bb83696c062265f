"""Pass sparse rows down a label tree: all nodes, a beam of the best, or best-first with a bound.

A tree is a tuple of arrays: ``ends`` and ``targets`` as in :class:`labelweave.labels.label_tree.LabelTree`;
``pair_ends``, the end of the features of each node; ``features``, ascending within a node; ``starts``, the
start of the weights of each of these; ``columns`` and ``weights``, the column of the node and the value, in
units of the column's ``scales``; ``intercepts``.  A node's margins use the row's features that the node has:
by bisection, or, for rows with many features, by a scan of the node's features in ``spread``, the row as a
dense vector.

A path's score is a soft minimum of its margins: the log-odds of a product of sigmoids, see ``joined``.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit

LOOP = {"nogil": True, "cache": True}


@njit(**LOOP)
def joined(score, margin, sharpness):
    """Return the scaled log-odds of the product of two probabilities, themselves given as scaled log-odds.

    With p(s) = 1 / (1 + exp(-sharpness s)) the result r has p(r) = p(score) p(margin); it is at most
    either of them, and increases in both.  A score of infinity is a probability of 1.
    """
    if score == np.inf:
        return margin
    both = score + margin
    least = min(score, margin, both)
    total = 1.0 if least == score else np.exp(sharpness * (least - score))  # one of them is 1
    total += 1.0 if least == margin else np.exp(sharpness * (least - margin))
    total += 1.0 if least == both else np.exp(sharpness * (least - both))
    return least - np.log(total) / sharpness


@njit(**LOOP)
def _least_margin(above, least, sharpness):
    """Return a lower bound of the margins whose path's score, ``joined``, is at least ``least``.

    This is far cheaper than joining them all; a relative slack of 1e-12 covers rounding.
    """
    if least == -np.inf:
        return least
    if above < least:
        return np.inf
    wanted, given = np.exp(-sharpness * least), np.exp(-sharpness * above)
    if not wanted < 1e300:
        return least
    odds = (wanted * (1 + 1e-12) - given * (1 - 1e-12)) / (1 + given)
    return max(least, -np.log(odds) / sharpness)


@njit(**LOOP)
def index_features(pair_ends, features, index_ends, shifts, index):
    """Index the start of the features of each node by the upper bits of their numbers.

    ``shifts`` (nodes,): the number of dropped lower bits; ``index_ends`` (nodes + 1,): the end of each node's
    part of ``index``, with positions relative to the node's first feature.
    """
    for node in range(len(shifts)):
        first, place = pair_ends[node], 0
        for slot in range(index_ends[node + 1] - index_ends[node]):
            while first + place < pair_ends[node + 1] and features[first + place] >> shifts[node] < slot:
                place += 1
            index[index_ends[node] + slot] = place


@njit(**LOOP)
def _find(feature, node, tree):
    """Return the position of a feature of a node, or -1."""
    first, features, index = tree[2][node], tree[3], tree[11]
    own, slot = tree[9][node], feature >> tree[10][node]
    if slot >= tree[9][node + 1] - own - 1:
        return -1
    for pair in range(first + index[own + slot], first + index[own + slot + 1]):
        if features[pair] >= feature:
            return pair if features[pair] == feature else -1
    return -1


@njit(**LOOP)
def _margins(node, indices, values, tree, found):
    starts, columns, weights, scales, intercepts = tree[4], tree[5], tree[6], tree[7], tree[8]
    first, n_columns = tree[0][node], tree[0][node + 1] - tree[0][node]
    found[:n_columns] = 0
    for entry in range(len(indices)):
        pair, value = _find(indices[entry], node, tree), values[entry]
        if pair >= 0:
            for place in range(starts[pair], starts[pair + 1]):
                found[columns[place]] += value * weights[place]
    for column in range(n_columns):
        found[column] = found[column] * scales[first + column] + intercepts[first + column]


@njit(**LOOP)
def _margin(column, node, indices, values, tree):
    """Return the margin of one column of a node for one row, with the same bits as among all columns."""
    starts, columns, weights = tree[4], tree[5], tree[6]
    own, total = column - tree[0][node], 0.0
    for entry in range(len(indices)):
        pair = _find(indices[entry], node, tree)
        if pair >= 0:
            low, high = starts[pair], starts[pair + 1]
            while low < high:
                middle = (low + high) // 2
                if columns[middle] < own:
                    low = middle + 1
                else:
                    high = middle
            if low < starts[pair + 1] and columns[low] == own:
                total += values[entry] * weights[low]
    return total * tree[7][column] + tree[8][column]


@njit(**LOOP)
def _insert(node, score, nodes, scores, count):
    """Insert a node or a label into the best ones, with ties to the lower number; return their number."""
    if count == len(nodes):
        if score < scores[count - 1] or (score == scores[count - 1] and node > nodes[count - 1]):
            return count
        count -= 1
    place = count
    while place > 0 and (
        score > scores[place - 1] or (score == scores[place - 1] and node < nodes[place - 1])
    ):
        nodes[place], scores[place] = nodes[place - 1], scores[place - 1]
        place -= 1
    nodes[place], scores[place] = node, score
    return count + 1


@njit(**LOOP)
def _take_labels(node, above, found, tree, sharpness, labels, scores, near):
    """Insert the labels of a node into the best ones; ``near`` is memory for as many labels and margins.

    While there are too few to exclude any, the best by margin set the limit.
    """
    first, last, targets = tree[0][node], tree[0][node + 1], tree[1]
    least = scores[-1]
    if least == -np.inf:
        near[1][:] = -np.inf
        for column in range(first, last):
            if targets[column] >= 0:
                _insert(targets[column], found[column - first], near[0], near[1], len(near[0]))
        least = joined(above, near[1][-1], sharpness) if near[1][-1] > -np.inf else least
    least = _least_margin(above, least, sharpness)
    for column in range(first, last):
        margin, target = found[column - first], targets[column]
        if target >= 0 and margin >= least:
            _insert(target, joined(above, margin, sharpness), labels, scores, len(labels))
            least = max(least, _least_margin(above, scores[-1], sharpness))


@njit(**LOOP)
def _by_node(nodes, counts, order):
    """Sort visits by node, stably; ``counts`` (nodes + 1,) is scratch memory."""
    counts[:] = 0
    for node in nodes:
        counts[node + 1] += 1
    for node in range(1, len(counts)):
        counts[node] += counts[node - 1]
    for visit in range(len(nodes)):
        order[counts[nodes[visit]]] = visit
        counts[nodes[visit]] += 1


@njit(**LOOP)
def score_tree(indptr, indices, values, tree, widest, sharpness, by_margin, table):
    """Write the scores of all labels (rows, labels); ``by_margin`` ignores the path above a label."""
    ends, targets = tree[0], tree[1]
    found, above = np.empty(widest), np.full((len(ends) - 1, len(table)), np.inf)
    for node in range(len(ends) - 1):
        for row in range(len(table)):
            own = slice(indptr[row], indptr[row + 1])
            _margins(node, indices[own], values[own], tree, found)
            for column in range(ends[node], ends[node + 1]):
                margin, target = found[column - ends[node]], targets[column]
                if target >= 0 and by_margin:
                    table[row, target] = margin
                elif target >= 0:
                    table[row, target] = joined(above[node, row], margin, sharpness)
                else:
                    above[-target, row] = joined(above[node, row], margin, sharpness)


@njit(**LOOP)
def _depth(node, above, owners):
    depth = 0
    while above[node] >= 0:
        node, depth = owners[above[node]], depth + 1
    return depth


@njit(**LOOP)
def score_labels(
    indptr, indices, values, tree, widest, sharpness, above, owners, best, best_scores, rows, wanted, scores
):
    """Write the scores of pairs of a row and a label, by ascending row, for label columns ``wanted``.

    ``above`` (nodes,): the column that leads to a node; ``owners`` (columns,): the node of a column;
    ``best`` and ``best_scores`` (rows, m): labels with known scores.  Pairs descend their paths
    together, one level at a time, node by node.
    """
    ends, targets, n_pairs = tree[0], tree[1], len(rows)
    found, counts = np.empty(widest), np.empty(len(ends), np.int64)
    columns, nodes = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
    places, order = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
    depths = np.empty(n_pairs, np.int64)
    scores[:] = np.inf
    for pair in range(n_pairs):
        label, row = targets[wanted[pair]], rows[pair]
        depths[pair] = _depth(owners[wanted[pair]], above, owners)
        for place in range(best.shape[1]):
            if best[row, place] == label:
                scores[pair], depths[pair] = best_scores[row, place], -1
    level, n_left = 0, n_pairs
    while n_left:
        n_left = 0
        for pair in range(n_pairs):
            if depths[pair] >= level:
                column = wanted[pair]
                for _ in range(depths[pair] - level):
                    column = above[owners[column]]
                columns[n_left], nodes[n_left], places[n_left] = column, owners[column], pair
                n_left += 1
        _by_node(nodes[:n_left], counts, order[:n_left])
        node, row = -1, -1
        for place in range(n_left):
            visit = order[place]
            column, pair = columns[visit], places[visit]
            own = slice(indptr[rows[pair]], indptr[rows[pair] + 1])
            is_whole = nodes[visit] == node and rows[pair] == row
            if not is_whole and place + 1 < n_left:
                node, row = nodes[visit], rows[pair]
                is_whole = nodes[order[place + 1]] == node and rows[places[order[place + 1]]] == row
                if is_whole:
                    _margins(node, indices[own], values[own], tree, found)
            if is_whole:
                margin = found[column - ends[node]]
            else:
                margin = _margin(column, nodes[visit], indices[own], values[own], tree)
            scores[pair] = joined(scores[pair], margin, sharpness)
        level += 1


@njit(**LOOP)
def search_by_beam(
    indptr, indices, values, tree, widest, sharpness, by_margin, beam, best, best_scores, opened
):
    """Find the best labels (rows, k) below the best ``beam`` nodes of each level.

    Inserts labels whose scores are above the present ones; ``opened`` (rows, m) gets the expanded
    nodes, m may be 0.  Rows descend one level together, node by node.
    """
    ends, targets, n_rows = tree[0], tree[1], len(best)
    found, counts = np.empty(widest), np.empty(len(ends), np.int64)
    nodes, rows = np.zeros(n_rows * beam, np.int64), np.arange(n_rows * beam)
    aboves, order = np.full(n_rows * beam, np.inf), np.empty(n_rows * beam, np.int64)
    later, later_scores = np.empty((n_rows, beam), np.int64), np.empty((n_rows, beam))
    near = np.empty(best.shape[1], np.int64), np.empty(best.shape[1])
    n_later, n_opened = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    n_visits = n_best = n_rows
    while n_visits:
        # the best node of each row first, whose labels set a limit for others
        _by_node(nodes[:n_best], counts, order[:n_best])
        _by_node(nodes[n_best:n_visits], counts, order[n_best:n_visits])
        order[n_best:n_visits] += n_best
        for visit in order[:n_visits]:
            node, row, above = nodes[visit], rows[visit], aboves[visit]
            own = slice(indptr[row], indptr[row + 1])
            _margins(node, indices[own], values[own], tree, found)
            if n_opened[row] < opened.shape[1]:
                opened[row, n_opened[row]] = node
                n_opened[row] += 1
            if not by_margin:
                _take_labels(node, above, found, tree, sharpness, best[row], best_scores[row], near)
            for column in range(ends[node], ends[node + 1]):
                margin, target = found[column - ends[node]], targets[column]
                if target >= 0:
                    if by_margin:
                        _insert(target, margin, best[row], best_scores[row], best.shape[1])
                elif n_later[row] < beam or min(above, margin) >= later_scores[row, beam - 1]:
                    score = joined(above, margin, sharpness)
                    n_later[row] = _insert(-target, score, later[row], later_scores[row], n_later[row])
        n_visits = 0
        for place in range(n_later.max()):
            for row in range(n_rows):
                if place < n_later[row]:
                    nodes[n_visits], rows[n_visits] = later[row, place], row
                    aboves[n_visits] = later_scores[row, place]
                    n_visits += 1
            n_best = n_best if place else n_visits
        n_later[:] = 0


@njit(**LOOP)
def _push(node, bound, nodes, bounds, count):
    """Push a node onto a heap, the highest bound first."""
    place = count
    while place > 0 and bounds[(place - 1) // 2] < bound:
        nodes[place], bounds[place] = nodes[(place - 1) // 2], bounds[(place - 1) // 2]
        place = (place - 1) // 2
    nodes[place], bounds[place] = node, bound
    return count + 1


@njit(**LOOP)
def _drop_first(nodes, bounds, count):
    count -= 1
    node, bound, place = nodes[count], bounds[count], 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and bounds[child + 1] > bounds[child]:
            child += 1
        if bounds[child] <= bound:
            break
        nodes[place], bounds[place] = nodes[child], bounds[child]
        place = child
    nodes[place], bounds[place] = node, bound
    return count


@njit(**LOOP)
def search_by_bound(
    indptr, indices, values, tree, widest, sharpness, budget, best, best_scores, proven, opened
):
    """Find the best labels (rows, k) by expanding the node of the highest score until no other can be better.

    A label's score is at most that of any node above it.  ``proven`` (rows,): whether that was reached
    within ``budget`` nodes, ``opened`` (rows,): the number of expanded nodes.
    """
    ends, targets = tree[0], tree[1]
    found = np.empty(widest)
    nodes, bounds = np.empty(len(ends), np.int64), np.empty(len(ends))
    near = np.empty(best.shape[1], np.int64), np.empty(best.shape[1])
    for row in range(len(best)):
        own, numbers = indices[indptr[row] : indptr[row + 1]], values[indptr[row] : indptr[row + 1]]
        labels, scores = best[row], best_scores[row]
        count = _push(0, np.inf, nodes, bounds, 0)
        while count and opened[row] < budget and bounds[0] >= scores[-1]:
            node, above = nodes[0], bounds[0]
            count = _drop_first(nodes, bounds, count)
            opened[row] += 1
            _margins(node, own, numbers, tree, found)
            _take_labels(node, above, found, tree, sharpness, labels, scores, near)
            least = _least_margin(above, scores[-1], sharpness)
            for column in range(ends[node], ends[node + 1]):
                margin, target = found[column - ends[node]], targets[column]
                if target < 0 and margin >= least:
                    count = _push(-target, joined(above, margin, sharpness), nodes, bounds, count)
        proven[row] = count == 0 or bounds[0] < scores[-1]


@njit(**LOOP)
def bound_nodes(tree, above, below, centers, largest, radii):
    """Bound the weights of the labels of every node; arrays with one number per pair of node and feature.

    ``above`` and ``below`` get the largest and smallest weight of a label, ``centers`` their mean over
    labels, ``largest`` (nodes,) the largest intercept, ``radii`` (nodes,) the largest distance of weights
    from the center.
    """
    ends, targets, pair_ends, _, starts, columns, weights, scales, intercepts = tree[:9]
    for node in range(len(ends) - 1):
        first, n_columns, n_labels = ends[node], ends[node + 1] - ends[node], 0
        distances = np.zeros(n_columns)
        largest[node] = -np.inf
        for column in range(n_columns):
            if targets[first + column] >= 0:
                n_labels += 1
                largest[node] = max(largest[node], intercepts[first + column])
        for pair in range(pair_ends[node], pair_ends[node + 1]):
            n_here, high, low, total = 0, -np.inf, np.inf, 0.0
            for place in range(starts[pair], starts[pair + 1]):
                if targets[first + columns[place]] >= 0:
                    weight = weights[place] * scales[first + columns[place]]
                    n_here, total = n_here + 1, total + weight
                    high, low = max(high, weight), min(low, weight)
            if n_here < n_labels:
                high, low = max(high, 0.0), min(low, 0.0)
            if n_labels == 0:
                high, low = 0.0, 0.0
            center = total / max(n_labels, 1)
            above[pair], below[pair], centers[pair] = high, low, center
            # first as if all were 0 there, then the non-zero ones
            for column in range(n_columns):
                distances[column] += center * center
            for place in range(starts[pair], starts[pair + 1]):
                weight = weights[place] * scales[first + columns[place]]
                distances[columns[place]] += weight * (weight - 2 * center)
        radii[node] = 0.0
        for column in range(n_columns):
            if targets[first + column] >= 0:
                radii[node] = max(radii[node], distances[column])
        radii[node] = np.sqrt(radii[node])


@njit(**LOOP)
def search_by_envelopes(
    indptr, indices, values, tree, widest, envelopes, budget, best, best_scores, proven, opened
):
    """Find the labels of the largest margins (rows, k), by bounds of the margins below each node.

    ``envelopes``: ``starts`` of features in ``nodes``, with ``above``, ``below`` and ``centers`` of each, and
    ``largest`` and ``radii`` per node.  The bound of a node is the smaller of two: each weight at its worst
    for the row, and the center plus the radius times the row's norm.
    """
    starts, of_node, above, below, centers, largest, radii = envelopes
    found, n_nodes = np.empty(widest), len(largest)
    boxes, balls, sizes = np.empty(n_nodes), np.empty(n_nodes), np.empty(n_nodes)
    nodes, bounds = np.empty(n_nodes, np.int64), np.empty(n_nodes)
    for row in range(len(best)):
        own, numbers = indices[indptr[row] : indptr[row + 1]], values[indptr[row] : indptr[row + 1]]
        labels, scores, length = best[row], best_scores[row], 0.0
        boxes[:], balls[:], sizes[:] = 0, 0, 0
        for entry in range(len(own)):
            value = numbers[entry]
            length += value * value
            for place in range(starts[own[entry]], starts[own[entry] + 1]):
                node = of_node[place]
                worst = value * (above[place] if value > 0 else below[place])
                boxes[node] += worst
                sizes[node] += abs(value) * max(above[place], -below[place])
                balls[node] += value * centers[place]
        length, count = np.sqrt(length), 0
        for node in range(n_nodes):
            if largest[node] > -np.inf:
                bound = min(boxes[node], balls[node] + radii[node] * length) + largest[node]
                bound += 1e-12 * (sizes[node] + abs(largest[node]) + radii[node] * length)  # rounding
                count = _push(node, bound, nodes, bounds, count)
        while count and opened[row] < budget and bounds[0] >= scores[-1]:
            node = nodes[0]
            count = _drop_first(nodes, bounds, count)
            opened[row] += 1
            _margins(node, own, numbers, tree, found)
            ends, targets = tree[0], tree[1]
            for column in range(ends[node], ends[node + 1]):
                if targets[column] >= 0:
                    _insert(targets[column], found[column - ends[node]], labels, scores, len(labels))
        proven[row] = count == 0 or bounds[0] < scores[-1]
