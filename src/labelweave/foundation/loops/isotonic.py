"""Scores consistent with a hierarchy: no label above one of its parents.

Labels are columns in an order with parents first; ``starts`` and ``parents`` list the parents of each.

The projection is the least-squares one: minimize ``sum w (x - s)^2`` with ``x[parent] >= x[child]``.  A block
of labels is split at its weighted mean v, into those whose solution is at least v and the others: the
best cut is a maximum closure, found by a maximum flow from labels above v to labels below
it (Picard 1976; the recursion is that of Spouge, Wan and Wilbur 2003, and of Luss, Rosset and Shahar 2012,
exact for every order).  A block that no cut improves is constant.

Most labels need no flow.  One below v without descendants is low, one above v without ancestors
is high; one with a single other in the block shares its side, so the two are merged.  The flow cuts the
remaining labels, often none.

The solution lies between the smallest score at or above a label and the largest at or below it.  So labels
consistent with all ancestors and descendants keep their scores, an edge is dropped if the smallest score at
or above the parent is at least the largest at or below the child, and connected parts become blocks.

All blocks of a row are cut at once, in passes over the remaining labels and edges, which stay in order.
``numbers`` and ``values`` hold the working arrays of the labels, one per line: 0 the column of a label, 1 its
part, 2 its block, 3 and 4 its numbers of edges up and down, 5 and 6 the first of each, 7 labels without a
side yet, 8 labels that share the side of another, in order, 9 which one, 10 to 12 the queue, the path
and the mark of a search; 0 scores, 1 weights, 2 excess, 3 need, and of a block 4 its mean, 5 its
rounding error, 6 and 7 the limits of its solution.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import INNER, LOOP, njit

_TINY = 1e-13
_NONE, _DOWN = np.uint32(2**32 - 1), np.uint32(2**31)
_OPEN, _HIGH, _LOW, _MERGED = 0, 1, 2, 3


@njit(**LOOP)
def greatest_below(scores, starts, parents):
    """Set every label to the largest score at or below it, in place."""
    for row in range(scores.shape[0]):
        for label in range(scores.shape[1] - 1, -1, -1):
            for edge in range(starts[label], starts[label + 1]):
                scores[row, parents[edge]] = max(scores[row, parents[edge]], scores[row, label])


@njit(**LOOP)
def project(scores, weights, parents, owners):
    """Project every row onto the hierarchy in place; its edges up and their owners, by label, are uint32."""
    n_labels, n_edges = scores.shape[1], len(parents)
    numbers, links = np.empty((13, n_labels), np.uint32), np.empty((6, n_edges), np.uint32)
    values, flow, side = np.empty((8, n_labels)), np.empty(n_edges), np.empty(n_labels, np.uint8)
    limits, solution = np.empty((2, 2 * n_labels)), np.empty(n_labels)
    for row in range(scores.shape[0]):
        for label in range(n_labels):
            numbers[0, label], numbers[1, label] = label, 0
            values[0, label], values[1, label] = scores[row, label], weights[label]
        links[0], links[1] = owners, parents
        limits[0, 0], limits[1, 0] = -np.inf, np.inf
        n_open, n_edges = n_labels, len(parents)
        while n_open:
            children, above = links[0][:n_edges], links[1][:n_edges]
            n_edges = _settle(n_open, children, above, numbers, values, limits, solution)
            children, above = links[0][:n_edges], links[1][:n_edges]
            n_open = _divide(n_open, children, above, numbers, values, limits)
            if n_open:
                _balance(n_open, children, above, links[2], numbers, values, side)
                _cut(n_open, children, above, links[2:], numbers, values, side, flow)
                n_edges = _part(n_open, children, above, numbers, values, limits, side)
        scores[row] = solution


@njit(**INNER)
def _settle(n_open, children, parents, numbers, values, limits, solution):
    """Keep the scores of labels consistent with all others of their part; move other edges first, count them.

    Both bounds are computed per edge without branches, which would be mispredicted two times of three.
    """
    nodes, part, given, low, high = numbers[0], numbers[1], values[0], values[2], values[3]
    least, most = limits[0], limits[1]
    for k in range(n_open):
        low[k] = high[k] = given[k]
        solution[nodes[k]] = min(max(given[k], least[part[k]]), most[part[k]])
    for edge in range(len(parents)):
        child = children[edge]
        low[child] = min(low[child], low[parents[edge]])
    for edge in range(len(parents) - 1, -1, -1):
        parent = parents[edge]
        high[parent] = max(high[parent], high[children[edge]])
    n_kept = 0
    for edge in range(len(parents)):
        child, parent = children[edge], parents[edge]
        children[n_kept], parents[n_kept] = child, parent
        n_kept += low[parent] < high[child]
    return n_kept


@njit(**INNER)
def _divide(n_open, children, parents, numbers, values, limits):
    """Number the blocks of connected labels, with their means; keep and count the labels in them."""
    nodes, part, block, root, place = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    given, weight, low, high, mean, total = values[0], values[1], values[2], values[3], values[4], values[5]
    for k in range(n_open):
        root[k] = k
    for edge in range(len(parents)):
        one, other = _root(root, parents[edge]), _root(root, children[edge])
        root[max(one, other)] = min(one, other)
    n_blocks, n_kept = 0, 0
    for k in range(n_open):
        if low[k] < high[k]:
            first = root[k] = root[root[k]]
            place[k] = n_kept
            if first == k:
                number = n_blocks
                mean[number] = total[number] = 0.0
                values[6, number], values[7, number] = limits[0, part[k]], limits[1, part[k]]
                n_blocks += 1
            else:
                number = block[place[first]]
            mean[number] += weight[k] * given[k]
            total[number] += weight[k]
            nodes[n_kept], block[n_kept] = nodes[k], number
            given[n_kept], weight[n_kept] = given[k], weight[k]
            n_kept += 1
    for edge in range(len(parents)):
        children[edge], parents[edge] = place[children[edge]], place[parents[edge]]
    for number in range(n_blocks):
        mean[number] /= total[number]
        total[number] = 0.0
    return n_kept


@njit(**INNER)
def _root(root, label):
    while root[label] != label:
        root[label] = root[root[label]]
        label = root[label]
    return label


@njit(**INNER)
def _balance(n_open, children, parents, next_down, numbers, values, side):
    """Compute by how much labels exceed the mean of their block, and list their edges."""
    block, n_up, n_down, first_up, first_down = numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]
    given, weight, excess, mean, tiny = values[0], values[1], values[2], values[4], values[5]
    for k in range(n_open):
        excess[k] = weight[k] * (given[k] - mean[block[k]])
        tiny[block[k]] += _TINY * abs(excess[k])
        n_up[k] = n_down[k] = 0
        first_up[k] = first_down[k] = _NONE
        side[k] = _OPEN
    for edge in range(len(parents) - 1, -1, -1):
        child, parent = children[edge], parents[edge]
        n_up[child] += 1
        first_up[child] = edge
        n_down[parent] += 1
        next_down[edge] = first_down[parent]
        first_down[parent] = edge


@njit(**INNER)
def _cut(n_open, children, parents, links, numbers, values, side, flow):
    """Determine the side of every label in the best cut of its block."""
    left, order, into = numbers[7], numbers[8], numbers[9]
    for k in range(n_open):
        left[k] = k
    n_left, n_merged, before = n_open, 0, -1
    while n_left and n_left != before:
        before = n_left
        n_merged = _rise(left[:n_left], children, parents, numbers, values, side, n_merged)
        n_left = _still_open(left[:n_left], side)
        n_merged = _sink(left[:n_left], children, links[0], numbers, values, side, n_merged)
        n_left = _still_open(left[:n_left], side)
    if n_left:
        _flow(left[:n_left], children, parents, links[1:], numbers, values, side, flow)
    for k in range(n_merged - 1, -1, -1):
        side[order[k]] = side[into[order[k]]]


@njit(**INNER)
def _still_open(left, side):
    n_left = 0
    for label in left:
        left[n_left] = label
        n_left += side[label] == _OPEN
    return n_left


@njit(**INNER)
def _rise(left, children, parents, numbers, values, side, n_merged):
    """Decide labels without open descendants, bottom up; count those that share a side with their parent."""
    block, n_up, n_down, first_up = numbers[2], numbers[3], numbers[4], numbers[5]
    order, into, excess, tiny = numbers[8], numbers[9], values[2], values[5]
    for label in left[::-1]:
        if n_down[label]:
            continue
        is_low = excess[label] <= tiny[block[label]]
        if is_low or n_up[label] == 0:
            side[label] = _LOW if is_low else _HIGH
            edge = first_up[label]
            while edge < len(parents) and children[edge] == label:
                n_down[parents[edge]] -= 1
                edge += 1
        elif n_up[label] == 1:
            edge = first_up[label]
            while side[parents[edge]] != _OPEN:
                edge += 1
            parent = parents[edge]
            excess[parent] += excess[label]
            n_down[parent] -= 1
            side[label], into[label], order[n_merged] = _MERGED, parent, label
            n_merged += 1
    return n_merged


@njit(**INNER)
def _sink(left, children, next_down, numbers, values, side, n_merged):
    """Decide labels without open ancestors, top down; count those that share a side with their child."""
    block, n_up, n_down, first_down = numbers[2], numbers[3], numbers[4], numbers[6]
    order, into, excess, tiny = numbers[8], numbers[9], values[2], values[5]
    for label in left:
        if n_up[label]:
            continue
        is_high = excess[label] >= -tiny[block[label]]
        if is_high or n_down[label] == 0:
            side[label] = _HIGH if is_high else _LOW
            edge = first_down[label]
            while edge != _NONE:
                n_up[children[edge]] -= 1
                edge = next_down[edge]
        elif n_down[label] == 1:
            edge = first_down[label]
            while side[children[edge]] != _OPEN:
                edge = next_down[edge]
            child = children[edge]
            excess[child] += excess[label]
            n_up[child] -= 1
            side[label], into[label], order[n_merged] = _MERGED, child, label
            n_merged += 1
    return n_merged


@njit(**INNER)
def _flow(left, children, parents, links, numbers, values, side, flow):
    """Maximize the flow among open labels; those with remaining excess and no reachable need are high."""
    block, first_up, first_down, queue, seen = numbers[2], numbers[5], numbers[6], numbers[10], numbers[12]
    excess, tiny = values[2], values[5]
    children, parents, next_down = _open_edges(left, children, parents, links, first_up, first_down, side)
    _spread(left, children, parents, first_up, excess, values[3], flow)
    for label in left:
        seen[label] = 0
    mark = 0
    for label in left:
        limit = tiny[block[label]]
        while excess[label] > limit and seen[label] != _NONE:
            mark += 1
            found, sent = _send(label, children, parents, next_down, numbers, excess, flow, mark, limit)
            if not sent:  # nor will any of these have a path
                for k in range(found):
                    seen[queue[k]] = _NONE
    for label in left:
        side[label] = _HIGH if seen[label] == _NONE else _LOW


@njit(**INNER)
def _open_edges(left, children, parents, links, first_up, first_down, side):
    for label in left:
        first_down[label] = _NONE
    new_children, new_parents, next_down = links[0], links[1], links[2]
    n_edges = 0
    for label in left:
        edge = first_up[label]
        first_up[label] = n_edges
        while edge < len(parents) and children[edge] == label:
            new_children[n_edges], new_parents[n_edges] = label, parents[edge]
            n_edges += side[parents[edge]] == _OPEN
            edge += 1
    for edge in range(n_edges - 1, -1, -1):
        parent = new_parents[edge]
        next_down[edge] = first_down[parent]
        first_down[parent] = edge
    return new_children[:n_edges], new_parents[:n_edges], next_down


@njit(**INNER)
def _spread(left, children, parents, first_up, excess, need, flow):
    """Send excess up to parents below the mean, or on to where most is needed above.

    need: the shortfall of a label and its ancestors on one path, minus what was sent on that path.
    """
    for label in left:
        need[label] = 0.0
        edge = first_up[label]
        while edge < len(parents) and children[edge] == label:
            flow[edge] = 0.0
            need[label] = max(need[label], need[parents[edge]])
            edge += 1
        need[label] -= min(excess[label], 0.0)
    for label in left[::-1]:
        if excess[label] <= 0:
            continue
        last, edge = _NONE, first_up[label]
        while edge < len(parents) and children[edge] == label:
            above = parents[edge]
            _move(min(excess[label], max(0.0, -excess[above])), label, above, edge, excess, flow, need)
            if last == _NONE or need[above] > need[parents[last]]:
                last = edge
            edge += 1
        if last == _NONE or excess[label] <= 0:
            continue
        edge = first_up[label]
        while edge < len(parents) and children[edge] == label:
            above = parents[edge]
            if edge != last:
                sent = max(0.0, min(excess[label] - need[parents[last]], need[above]))
                _move(sent, label, above, edge, excess, flow, need)
            edge += 1
        _move(excess[label], label, parents[last], last, excess, flow, need)


@njit(**INNER)
def _move(amount, label, above, edge, excess, flow, need):
    flow[edge] += amount
    excess[above] += amount
    excess[label] -= amount
    need[above] -= amount


@njit(**INNER)
def _send(label, children, parents, next_down, numbers, excess, flow, mark, tiny):
    """Send the excess of a label to reachable needs, up edges or down against their flow, nearest first.

    came_by: the edge by which a label was reached, with ``_DOWN`` added for one against a flow.
    Returns the number of reached labels, and whether anything was sent.
    """
    first_up, first_down, queue, came_by, seen = numbers[5], numbers[6], numbers[10], numbers[11], numbers[12]
    queue[0], seen[label], found, done, sent = label, mark, 1, 0, False
    while done < found and excess[label] > tiny:
        at = queue[done]
        done += 1
        if excess[at] < -tiny:
            sent |= _carry(label, at, parents, children, excess, flow, came_by, tiny)
        edge = first_up[at]
        while edge < len(parents) and children[edge] == at:
            above = parents[edge]
            if seen[above] < mark:
                seen[above], came_by[above], queue[found] = mark, edge, above
                found += 1
            edge += 1
        edge = first_down[at]
        while edge != _NONE:
            child = children[edge]
            if seen[child] < mark and flow[edge] > tiny:
                seen[child], came_by[child], queue[found] = mark, edge + _DOWN, child
                found += 1
            edge = next_down[edge]
    return found, sent


@njit(**INNER)
def _carry(label, end, parents, owners, excess, flow, came_by, tiny):
    """Send as much excess along the path as it has capacity for; return whether it was any."""
    amount, at = min(excess[label], -excess[end]), end
    while at != label:
        edge = came_by[at]
        if edge >= _DOWN:
            edge -= _DOWN
            amount = min(amount, flow[edge])
            at = parents[edge]
        else:
            at = owners[edge]
    if amount <= tiny:
        return False
    excess[label] -= amount
    excess[end] += amount
    at = end
    while at != label:
        edge = came_by[at]
        if edge >= _DOWN:
            edge -= _DOWN
            flow[edge] -= amount
            at = parents[edge]
        else:
            flow[edge] += amount
            at = owners[edge]
    return True


@njit(**INNER)
def _part(n_open, children, parents, numbers, values, limits, side):
    """Make each side of a block a part with its limits, or set a block with one side to its mean.

    Returns the number of edges within parts, moved first.
    """
    part, block, n_high, size = numbers[1], numbers[2], numbers[3], numbers[4]
    given, value, least, most = values[0], values[4], values[6], values[7]
    n_blocks = 0
    for k in range(n_open):
        if block[k] >= n_blocks:
            n_blocks = block[k] + 1
            n_high[n_blocks - 1] = size[n_blocks - 1] = 0
        n_high[block[k]] += side[k] == _HIGH
        size[block[k]] += 1
    for b in range(n_blocks):
        value[b] = min(max(value[b], least[b]), most[b])
        limits[0, 2 * b], limits[1, 2 * b] = least[b], value[b]
        limits[0, 2 * b + 1], limits[1, 2 * b + 1] = value[b], most[b]
    for k in range(n_open):
        b = block[k]
        part[k] = 2 * b + (side[k] == _HIGH)
        if n_high[b] == 0 or n_high[b] == size[b]:
            given[k] = value[b]
            side[k] = _OPEN
    n_kept = 0
    for edge in range(len(parents)):
        child, parent = children[edge], parents[edge]
        children[n_kept], parents[n_kept] = child, parent
        n_kept += side[child] == side[parent] and side[child] != _OPEN
    return n_kept
