"""Scores that obey a hierarchy: no label above one of its parents.

Labels are columns in an order with parents first.  ``starts`` and ``parents`` list the parents of each,
``owners`` says whose they are; ``child_starts``, ``children`` and ``child_edges`` are the same edges from
above, with their places in ``parents``.

The projection is the least-squares one: minimise ``sum w (x - s)^2`` with ``x[parent] >= x[child]``.  A block
of labels is cut in two at its weighted mean v, into those whose solution is at least v and the others: the
cut that gains most is a maximum closure, found by a maximum flow of what exceeds v up to what falls short of
it (Picard 1976; the recursion is that of Spouge, Wan and Wilbur 2003, and of Luss, Rosset and Shahar 2012,
exact for every order).  A block that no cut improves is constant.

The solution lies between the least score at or above a label and the greatest at or below it.  So labels in
order with all above and below them keep their scores, an edge is left out where the least at or above the
parent is no less than the greatest at or below the child, and what then hangs together is a block of its own.
"""

from __future__ import annotations

import numpy as np

from labelweave._loops.compiling import INNER, LOOP, njit

_TINY = 1e-13


@njit(**LOOP)
def greatest_below(scores, starts, parents):
    """Give every label the greatest score at or below it, in place."""
    for row in range(scores.shape[0]):
        for label in range(scores.shape[1] - 1, -1, -1):
            for edge in range(starts[label], starts[label + 1]):
                scores[row, parents[edge]] = max(scores[row, parents[edge]], scores[row, label])


@njit(**LOOP)
def project(scores, weights, edges):
    """Project every row onto the hierarchy, in place.

    edges: starts, parents, owners, child_starts, children, child_edges.
    """
    n_labels = scores.shape[1]
    numbers, values = np.empty((6, n_labels), np.int64), np.empty((4, n_labels))
    block, nodes, came_by, ends, spare, seen = numbers
    low, high, excess, solution = values
    is_high, flow, mark = np.zeros(n_labels, np.bool_), np.zeros(len(edges[1])), 0
    seen.fill(0)
    # parts that wait: where they start and stop, and what their solutions lie between
    places, limits = np.empty((n_labels + 1, 2), np.int64), np.empty((n_labels + 1, 2))
    for row in range(scores.shape[0]):
        given = scores[row]
        number, waiting = 1, 1
        for label in range(n_labels):
            nodes[label], block[label] = label, 1
        places[0, 0], places[0, 1], limits[0, 0], limits[0, 1] = 0, n_labels, -np.inf, np.inf
        while waiting:
            waiting -= 1
            start, least, most = places[waiting, 0], limits[waiting, 0], limits[waiting, 1]
            part = nodes[start : places[waiting, 1]]
            n_rest = _settle(given, part, block, edges, low, high, solution, least, most)
            n_blocks = _divide(part[:n_rest], block, edges, low, high, came_by, spare, ends, number)
            number += n_blocks
            stop = start
            for k in range(n_blocks):
                start, stop = stop, stop + ends[k]
                part = nodes[start:stop]
                mean, n_high = _mean(given, weights, part), 0
                if len(part) > 2:
                    _measure(given, weights, mean, part, block, edges, excess, flow, low)
                    tiny, falls_short = _spread(part, block, edges, excess, flow, low)
                    if falls_short:
                        n_high, mark = _cut(
                            part, block, edges, excess, flow, is_high, came_by, seen, mark, spare, tiny
                        )
                value = min(max(mean, least), most)
                if n_high in (0, len(part)):
                    for label in part:
                        solution[label], block[label] = value, 0
                    continue
                _part(part, is_high, spare, block, number)
                number += 2
                places[waiting, 0], places[waiting, 1] = start, stop - n_high
                limits[waiting, 0], limits[waiting, 1] = least, value
                places[waiting + 1, 0], places[waiting + 1, 1] = stop - n_high, stop
                limits[waiting + 1, 0], limits[waiting + 1, 1] = value, most
                waiting += 2
        for label in range(n_labels):
            scores[row, label] = solution[label]


@njit(**INNER)
def _settle(given, part, block, edges, low, high, solution, least, most):
    """Keep the scores of labels that are in order with all others of the block; count the rest, now first."""
    starts, parents = edges[0], edges[1]
    for label in part:
        low[label] = high[label] = given[label]
        for edge in range(starts[label], starts[label + 1]):
            above = parents[edge]
            if block[above] == block[label] and low[above] < low[label]:
                low[label] = low[above]
    for label in part[::-1]:
        for edge in range(starts[label], starts[label + 1]):
            above = parents[edge]
            if block[above] == block[label] and high[above] < high[label]:
                high[above] = high[label]
    n_rest = 0
    for label in part:
        if low[label] < high[label]:
            part[n_rest] = label
            n_rest += 1
        else:
            solution[label] = min(max(given[label], least), most)
            block[label] = 0
    return n_rest


@njit(**INNER)
def _divide(part, block, edges, low, high, root, spare, sizes, number):
    """Make blocks of what hangs together by edges that matter, one after the other; count them, and each."""
    starts, parents = edges[0], edges[1]
    for label in part:
        root[label] = label
        for edge in range(starts[label], starts[label + 1]):
            above = parents[edge]
            if block[above] == block[label] and low[above] < high[label]:
                one, other = _root(root, above), _root(root, label)
                root[max(one, other)] = min(one, other)
    n_blocks = 0
    for place in range(len(part)):
        label = spare[place] = part[place]
        first = _root(root, label)
        if first == label:
            block[label] = number + 1 + n_blocks
            sizes[n_blocks] = 1
            n_blocks += 1
        else:
            block[label] = block[first]
            sizes[block[label] - number - 1] += 1
    if n_blocks > 1:
        position = 0
        for k in range(n_blocks):  # where each begins, for a moment, in the place of roots
            root[k] = position
            position += sizes[k]
        for label in spare[: len(part)]:
            k = block[label] - number - 1
            part[root[k]] = label
            root[k] += 1
    return n_blocks


@njit(**INNER)
def _root(root, label):
    while root[label] != label:
        root[label] = root[root[label]]
        label = root[label]
    return label


@njit(**INNER)
def _mean(given, weights, part):
    total, weight = 0.0, 0.0
    for label in part:
        total += weights[label] * given[label]
        weight += weights[label]
    return total / weight


@njit(**INNER)
def _measure(given, weights, mean, part, block, edges, excess, flow, need):
    """Say by how much labels exceed the mean, and what they and those above on one way fall short of it."""
    starts, parents = edges[0], edges[1]
    for label in part:
        excess[label] = weights[label] * (given[label] - mean)
        need[label] = 0.0
        for edge in range(starts[label], starts[label + 1]):
            flow[edge] = 0.0
            if block[parents[edge]] == block[label] and need[parents[edge]] > need[label]:
                need[label] = need[parents[edge]]
        if excess[label] < 0:
            need[label] -= excess[label]


@njit(**INNER)
def _spread(part, block, edges, excess, flow, need):
    """Send what exceeds the mean up, to parents that fall short of it, or on to where most is needed above.

    need: is lessened by what was sent that way.
    Returns how much of the flow is rounding, and whether anything still falls short.
    """
    starts, parents = edges[0], edges[1]
    tiny, falls_short = 0.0, False
    for label in part:
        tiny += _TINY * abs(excess[label])
    for label in part[::-1]:
        last = -1
        if excess[label] <= 0:
            falls_short |= excess[label] < -tiny
            continue
        for edge in range(starts[label], starts[label + 1]):
            above = parents[edge]
            if block[above] == block[label]:
                _move(min(excess[label], max(0.0, -excess[above])), label, above, edge, excess, flow, need)
                if last < 0 or need[above] > need[parents[last]]:
                    last = edge
        if last < 0 or excess[label] <= 0:
            continue
        for edge in range(starts[label], starts[label + 1]):
            if edge != last and block[parents[edge]] == block[label]:
                sent = max(0.0, min(excess[label] - need[parents[last]], need[parents[edge]]))
                _move(sent, label, parents[edge], edge, excess, flow, need)
        _move(excess[label], label, parents[last], last, excess, flow, need)
    return tiny, falls_short


@njit(**INNER)
def _move(amount, label, above, edge, excess, flow, need):
    flow[edge] += amount
    excess[above] += amount
    excess[label] -= amount
    need[above] -= amount


@njit(**INNER)
def _cut(part, block, edges, excess, flow, is_high, came_by, seen, mark, queue, tiny):
    """Make the flow a maximum one; mark and count the labels whose excess no lack is left for.

    mark: the last number in ``seen``; the new last one is returned too.
    """
    for label in part:
        is_high[label] = False
    n_high = 0
    for label in part:
        while excess[label] > tiny and not is_high[label]:
            mark += 1
            found, sent = _send(label, block, edges, excess, flow, is_high, came_by, seen, mark, queue, tiny)
            if not sent:  # nor will there be a way from any of these
                for k in range(found):
                    is_high[queue[k]] = True
                n_high += found
    return n_high, mark


@njit(**INNER)
def _send(label, block, edges, excess, flow, is_high, came_by, seen, mark, queue, tiny):
    """Send the excess of a label to lacks it reaches, up edges or down against their flow, the near first.

    came_by: the edge by which a label was reached: its place, or -2 less its place for one against a flow.
    Returns how many labels were reached, and whether anything was sent.
    """
    starts, parents, owners, child_starts, children, child_edges = edges
    queue[0], seen[label], found, done, sent = label, mark, 1, 0, False
    while done < found and excess[label] > tiny:
        at = queue[done]
        done += 1
        if excess[at] < -tiny:
            sent |= _carry(label, at, parents, owners, excess, flow, came_by, tiny)
        for edge in range(starts[at], starts[at + 1]):
            above = parents[edge]
            if block[above] == block[label] and seen[above] != mark and not is_high[above]:
                seen[above], came_by[above], queue[found] = mark, edge, above
                found += 1
        for k in range(child_starts[at], child_starts[at + 1]):
            child, edge = children[k], child_edges[k]
            is_open = flow[edge] > tiny and block[child] == block[label]
            if is_open and seen[child] != mark and not is_high[child]:
                seen[child], came_by[child], queue[found] = mark, -2 - edge, child
                found += 1
    return found, sent


@njit(**INNER)
def _carry(label, end, parents, owners, excess, flow, came_by, tiny):
    """Send as much excess along the way that was found as there is room for; say whether it was any."""
    amount, at = min(excess[label], -excess[end]), end
    while at != label:
        edge = came_by[at]
        if edge < 0:
            amount = min(amount, flow[-2 - edge])
        at = owners[edge] if edge >= 0 else parents[-2 - edge]
    if amount <= tiny:
        return False
    excess[label] -= amount
    excess[end] += amount
    at = end
    while at != label:
        edge = came_by[at]
        if edge >= 0:
            flow[edge] += amount
            at = owners[edge]
        else:
            flow[-2 - edge] -= amount
            at = parents[-2 - edge]
    return True


@njit(**INNER)
def _part(part, is_high, spare, block, number):
    """Bring the labels of a block that are not high to its front, each part in its order; number the two."""
    low, rest = 0, 0
    for label in part:
        if is_high[label]:
            block[label] = number + 2
            spare[rest] = label
            rest += 1
        else:
            block[label] = number + 1
            part[low] = label
            low += 1
    for k in range(rest):
        part[low + k] = spare[k]
