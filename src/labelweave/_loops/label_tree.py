"""Walks of sparse rows down a tree over labels: all nodes, a beam of the best, or the best until a bound.

A tree is a tuple of arrays: ``ends`` and ``targets`` as in :class:`labelweave.labels.label_tree.LabelTree`;
``pair_ends``, where the features of each node end; ``features``, rising within a node; ``starts``, where the
weights of each of these begin; ``columns`` and ``weights``, of which column of the node and how large, in
units of the column's ``scales``; ``intercepts``.  A node's margins take the row's features that it knows: by
bisection, or, where the row has many, by a look at all of the node's in ``spread``, the row as a dense
vector.

A path's score is a soft minimum of its margins: the log-odds of a product of sigmoids, see ``joined``.
"""

from __future__ import annotations

import numpy as np

from labelweave._loops.compiling import njit

LOOP = {"nogil": True, "cache": True}


@njit(**LOOP)
def joined(score, margin, sharpness):
    """Give the log-odds, a multiple of them, of a product of two probabilities given as such log-odds.

    With p(s) = 1 / (1 + exp(-sharpness s)) the result r has p(r) = p(score) p(margin); it is no larger than
    either of them, and rises with both.  A score of infinity is a probability of 1.
    """
    if score == np.inf:
        return margin
    both = score + margin
    least = min(score, margin, both)
    total = np.exp(sharpness * (least - score)) + np.exp(sharpness * (least - margin))
    total += np.exp(sharpness * (least - both))
    return least - np.log(total) / sharpness


@njit(**LOOP)
def _first_from(features, feature, low, high):
    """Find the first place, from ``low`` on and before ``high``, whose feature is not below the given one."""
    while low < high:
        middle = (low + high) // 2
        if features[middle] < feature:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**LOOP)
def _add_pair(pair, value, starts, columns, weights, found):
    for place in range(starts[pair], starts[pair + 1]):
        found[columns[place]] += value * weights[place]


@njit(**LOOP)
def _margins(node, indices, values, spread, tree, found):
    """Write the margins of a node's columns for one row."""
    ends, _, pair_ends, features, starts, columns, weights, scales, intercepts = tree
    n_columns = ends[node + 1] - ends[node]
    found[:n_columns] = 0
    low, high = pair_ends[node], pair_ends[node + 1]
    steps = 1
    while (1 << steps) < high - low:
        steps += 1
    if len(indices) * steps < high - low:
        for entry in range(len(indices)):
            low = _first_from(features, indices[entry], low, high)
            if low < high and features[low] == indices[entry]:
                _add_pair(low, values[entry], starts, columns, weights, found)
    else:
        for pair in range(low, high):
            if spread[features[pair]] != 0:
                _add_pair(pair, spread[features[pair]], starts, columns, weights, found)
    for column in range(n_columns):
        found[column] = found[column] * scales[ends[node] + column] + intercepts[ends[node] + column]


@njit(**LOOP)
def _take(label, score, labels, scores):
    """Let a label take part in the best ones, best first; of equal scores the lower number is better."""
    place = len(labels) - 1
    if score < scores[place] or (score == scores[place] and label > labels[place]):
        return
    while place > 0 and (
        score > scores[place - 1] or (score == scores[place - 1] and label < labels[place - 1])
    ):
        labels[place], scores[place] = labels[place - 1], scores[place - 1]
        place -= 1
    labels[place], scores[place] = label, score


@njit(**LOOP)
def _insert(node, score, nodes, scores, count):
    """Let a node take part in a beam, best first; give how many there are now."""
    if count == len(nodes):
        if not score > scores[count - 1]:
            return count
        count -= 1
    place = count
    while place > 0 and score > scores[place - 1]:
        nodes[place], scores[place] = nodes[place - 1], scores[place - 1]
        place -= 1
    nodes[place], scores[place] = node, score
    return count + 1


@njit(**LOOP)
def _spread_row(indices, values, spread):
    for entry in range(len(indices)):
        spread[indices[entry]] = values[entry]


@njit(**LOOP)
def _clear_row(indices, spread):
    for entry in range(len(indices)):
        spread[indices[entry]] = 0


@njit(**LOOP)
def score_tree(indptr, indices, values, n_features, tree, widest, sharpness, by_margin, table):
    """Write the scores of all labels (rows, labels); ``by_margin`` leaves out what is above a label."""
    ends, targets = tree[0], tree[1]
    spread, found = np.zeros(n_features), np.empty(widest)
    above = np.empty(len(ends) - 1)
    for row in range(len(table)):
        own, numbers = indices[indptr[row] : indptr[row + 1]], values[indptr[row] : indptr[row + 1]]
        _spread_row(own, numbers, spread)
        above[0] = np.inf
        for node in range(len(ends) - 1):
            _margins(node, own, numbers, spread, tree, found)
            for column in range(ends[node], ends[node + 1]):
                margin, target = found[column - ends[node]], targets[column]
                if target >= 0 and by_margin:
                    table[row, target] = margin
                elif target >= 0:
                    table[row, target] = joined(above[node], margin, sharpness)
                else:
                    above[-target] = joined(above[node], margin, sharpness)
        _clear_row(own, spread)


@njit(**LOOP)
def score_labels(
    indptr, indices, values, n_features, tree, sharpness, above, owners, ends_of_rows, wanted, scores
):
    """Write the scores of some labels of every row, those whose columns are ``wanted``.

    ``above`` (nodes,): the column that leads to a node; ``owners`` (columns,): the node of a column;
    ``ends_of_rows`` (rows + 1,): where the columns wanted of each row begin.
    """
    ends = tree[0]
    spread, margins = np.zeros(n_features), np.empty(len(owners))
    seen, path = np.full(len(above), -1, np.int64), np.empty(len(above), np.int64)
    for row in range(len(ends_of_rows) - 1):
        own, numbers = indices[indptr[row] : indptr[row + 1]], values[indptr[row] : indptr[row + 1]]
        _spread_row(own, numbers, spread)
        for place in range(ends_of_rows[row], ends_of_rows[row + 1]):
            column, length = wanted[place], 0
            while column >= 0:
                path[length] = column
                node, length = owners[column], length + 1
                if seen[node] != row:
                    _margins(node, own, numbers, spread, tree, margins[ends[node] :])
                    seen[node] = row
                column = above[node]
            score = np.inf
            for step in range(length - 1, -1, -1):
                score = joined(score, margins[path[step]], sharpness)
            scores[place] = score
        _clear_row(own, spread)


@njit(**LOOP)
def search_by_beam(
    indptr, indices, values, n_features, tree, widest, sharpness, by_margin, beam, best, best_scores, opened
):
    """Find the best labels (rows, k) below the best ``beam`` nodes of each level.

    Enters labels whose scores are above those that are there; ``opened`` (rows, m) gets the nodes that were
    looked into, m may be 0.
    """
    ends, targets = tree[0], tree[1]
    spread, found = np.zeros(n_features), np.empty(widest)
    now, now_scores = np.empty(beam, np.int64), np.empty(beam)
    later, later_scores = np.empty(beam, np.int64), np.empty(beam)
    for row in range(len(best)):
        own, numbers = indices[indptr[row] : indptr[row + 1]], values[indptr[row] : indptr[row + 1]]
        _spread_row(own, numbers, spread)
        labels, scores = best[row], best_scores[row]
        now[0], now_scores[0], count, n_opened = 0, np.inf, 1, 0
        while count:
            n_later = 0
            for place in range(count):
                node, above = now[place], now_scores[place]
                if n_opened < opened.shape[1]:
                    opened[row, n_opened] = node
                    n_opened += 1
                _margins(node, own, numbers, spread, tree, found)
                for column in range(ends[node], ends[node + 1]):
                    margin, target = found[column - ends[node]], targets[column]
                    if target < 0:
                        score = joined(above, margin, sharpness)
                        n_later = _insert(-target, score, later, later_scores, n_later)
                    elif by_margin:
                        _take(target, margin, labels, scores)
                    elif min(above, margin) >= scores[-1]:
                        _take(target, joined(above, margin, sharpness), labels, scores)
            now, later = later, now
            now_scores, later_scores = later_scores, now_scores
            count = n_later
        _clear_row(own, spread)


@njit(**LOOP)
def _push(node, bound, nodes, bounds, count):
    """Put a node on a heap, the highest bound first."""
    place = count
    while place > 0 and bounds[(place - 1) // 2] < bound:
        nodes[place], bounds[place] = nodes[(place - 1) // 2], bounds[(place - 1) // 2]
        place = (place - 1) // 2
    nodes[place], bounds[place] = node, bound
    return count + 1


@njit(**LOOP)
def _drop_first(nodes, bounds, count):
    """Take the first node off a heap."""
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
    indptr, indices, values, n_features, tree, widest, sharpness, budget, best, best_scores, proven, opened
):
    """Find the best labels (rows, k) by opening the node of the highest score until no other can have better.

    A label's score is no larger than that of any node above it.  ``proven`` (rows,) says whether that was so
    after ``budget`` nodes at most, ``opened`` (rows,) how many it took.
    """
    ends, targets = tree[0], tree[1]
    spread, found = np.zeros(n_features), np.empty(widest)
    nodes, bounds = np.empty(len(ends), np.int64), np.empty(len(ends))
    for row in range(len(best)):
        own, numbers = indices[indptr[row] : indptr[row + 1]], values[indptr[row] : indptr[row + 1]]
        _spread_row(own, numbers, spread)
        labels, scores = best[row], best_scores[row]
        count = _push(0, np.inf, nodes, bounds, 0)
        while count and opened[row] < budget and bounds[0] >= scores[-1]:
            node, above = nodes[0], bounds[0]
            count = _drop_first(nodes, bounds, count)
            opened[row] += 1
            _margins(node, own, numbers, spread, tree, found)
            for column in range(ends[node], ends[node + 1]):
                margin, target = found[column - ends[node]], targets[column]
                if min(above, margin) < scores[-1]:
                    continue
                score = joined(above, margin, sharpness)
                if target >= 0:
                    _take(target, score, labels, scores)
                else:
                    count = _push(-target, score, nodes, bounds, count)
        proven[row] = count == 0 or bounds[0] < scores[-1]
        _clear_row(own, spread)


@njit(**LOOP)
def bound_nodes(tree, above, below, centres, largest, radii):
    """Bound the weights of the labels of every node; arrays of a number a pair of node and feature.

    ``above`` and ``below`` get the largest and smallest weight of a label, ``centres`` their mean over
    labels, ``largest`` (nodes,) the largest intercept, ``radii`` (nodes,) the largest distance of weights
    from the centre.
    """
    ends, targets, pair_ends, _, starts, columns, weights, scales, intercepts = tree
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
            centre = total / max(n_labels, 1)
            above[pair], below[pair], centres[pair] = high, low, centre
            # as if all were 0 there, and then those that are not
            for column in range(n_columns):
                distances[column] += centre * centre
            for place in range(starts[pair], starts[pair + 1]):
                weight = weights[place] * scales[first + columns[place]]
                distances[columns[place]] += weight * (weight - 2 * centre)
        radii[node] = 0.0
        for column in range(n_columns):
            if targets[first + column] >= 0:
                radii[node] = max(radii[node], distances[column])
        radii[node] = np.sqrt(radii[node])


@njit(**LOOP)
def search_by_envelopes(
    indptr, indices, values, n_features, tree, widest, envelopes, budget, best, best_scores, proven, opened
):
    """Find the labels of the largest margins (rows, k), by bounds of the margins below each node.

    ``envelopes``: ``starts`` of features in ``nodes``, with ``above``, ``below`` and ``centres`` of each, and
    ``largest`` and ``radii`` a node.  The bound of a node is the smaller of two: each weight at its worst for
    the row, and the centre with the radius times the row's length.
    """
    starts, of_node, above, below, centres, largest, radii = envelopes
    spread, found, n_nodes = np.zeros(n_features), np.empty(widest), len(largest)
    boxes, balls, sizes = np.empty(n_nodes), np.empty(n_nodes), np.empty(n_nodes)
    nodes, bounds = np.empty(n_nodes, np.int64), np.empty(n_nodes)
    for row in range(len(best)):
        own, numbers = indices[indptr[row] : indptr[row + 1]], values[indptr[row] : indptr[row + 1]]
        _spread_row(own, numbers, spread)
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
                balls[node] += value * centres[place]
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
            _margins(node, own, numbers, spread, tree, found)
            ends, targets = tree[0], tree[1]
            for column in range(ends[node], ends[node + 1]):
                if targets[column] >= 0:
                    _take(targets[column], found[column - ends[node]], labels, scores)
        proven[row] = count == 0 or bounds[0] < scores[-1]
        _clear_row(own, spread)
