"""Operations on tables in one memory pass: updates, inner products in double precision, small weights."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import INNER, LOOP, njit

_LEAST = np.float32(1e-30)  # the weight of a bin with rows, where rounding leaves none


@njit(nogil=True, cache=True, fastmath={"contract"})
def add_multiples(target, factors, vector):
    """Compute ``target += factors * vector``; factors have the shape (1, k), or (m, 1)."""
    for i in range(target.shape[0]):
        if factors.shape[1] == 1:
            factor = factors[min(i, factors.shape[0] - 1), 0]
            for j in range(target.shape[1]):
                target[i, j] += factor * vector[i, j]
        else:
            for j in range(target.shape[1]):
                target[i, j] += factors[0, j] * vector[i, j]


@njit(nogil=True, cache=True, fastmath={"contract"})
def multiply_and_add_rows(target, factors, vector):
    """Compute ``target = factors * target + vector``; factors as in :func:`add_multiples`."""
    for i in range(target.shape[0]):
        if factors.shape[1] == 1:
            factor = factors[min(i, factors.shape[0] - 1), 0]
            for j in range(target.shape[1]):
                target[i, j] = factor * target[i, j] + vector[i, j]
        else:
            for j in range(target.shape[1]):
                target[i, j] = factors[0, j] * target[i, j] + vector[i, j]


@njit(nogil=True, cache=True)
def add_column_products(left, right, sums):
    """Compute ``sums[j] += sum over i of left[i, j] * right[i, j]``."""
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            sums[j] += np.float64(left[i, j]) * np.float64(right[i, j])


# sums may be split into lanes; NaN and infinity keep their meaning
@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def row_product_sums(left, right, sums):
    """Compute ``sums[i] = sum over j of left[i, j] * right[i, j]``."""
    for i in range(left.shape[0]):
        total = 0.0
        for j in range(left.shape[1]):
            total += np.float64(left[i, j]) * np.float64(right[i, j])
        sums[i] = total


@njit(**LOOP)
def _smallest_above(sizes, count, place):
    """Return the number at a position if the first ``count`` were sorted, by quickselect."""
    low, high = 0, count - 1
    while low < high:
        pivot, left, right = sizes[(low + high) // 2], low, high
        while left <= right:
            while sizes[left] < pivot:
                left += 1
            while sizes[right] > pivot:
                right -= 1
            if left <= right:
                sizes[left], sizes[right] = sizes[right], sizes[left]
                left += 1
                right -= 1
        if place <= right:
            high = right
        elif place >= left:
            low = left
        else:
            break
    return sizes[place]


@njit(**LOOP)
def drop_smallest(weights, share, active):
    """Set the smallest weights (d, labels) of active labels to 0: keep a fraction of each, at least one less.

    Ties are broken by dropping the first features.
    """
    d, n_labels = weights.shape
    sizes, counts = np.empty((n_labels, d), weights.dtype), np.zeros(n_labels, np.int64)
    for feature in range(d):  # labels in the inner loop, in memory order
        for label in range(n_labels):
            if weights[feature, label] != 0:
                sizes[label, counts[label]] = abs(weights[feature, label])
                counts[label] += 1
    largest, n_equal = np.full(n_labels, -1, weights.dtype), np.zeros(n_labels, np.int64)
    for label in range(n_labels):
        count = counts[label]
        if count == 0 or not active[label]:
            continue
        n_dropped = min(count, 1 + int((1 - share[label]) * count))
        largest[label], n_equal[label] = _smallest_above(sizes[label], count, n_dropped - 1), n_dropped
        for place in range(count):
            n_equal[label] -= sizes[label, place] < largest[label]
    for feature in range(d):
        for label in range(n_labels):
            size = abs(weights[feature, label])
            if size == 0 or size > largest[label] or (size == largest[label] and n_equal[label] == 0):
                continue
            n_equal[label] -= size == largest[label]
            weights[feature, label] = 0


@njit(**LOOP)
def copy_labels(target, source, chosen):
    """Copy the columns of chosen labels; both tables (rows, labels)."""
    for row in range(len(target)):
        for label in range(len(chosen)):
            target[row, label] = source[row, label] if chosen[label] else target[row, label]


@njit(**LOOP)
def find_leaves(rows, roots, feature, threshold, children, missing_left, leaves):
    """Pass every row down every tree: ``leaves[i, t]`` is the node where row i ends in tree t.

    feature (m,): the feature that a node splits on, negative at leaves; children come after their parent.
    children (m, 2): the next node of rows at most at the threshold, and of the others.
    missing_left (m,): whether rows with a missing value go to the first child.
    """
    for t in range(len(roots)):
        for i in range(rows.shape[0]):
            node = roots[t]
            while feature[node] >= 0:
                value = rows[i, feature[node]]
                is_left = missing_left[node] if np.isnan(value) else value <= threshold[node]
                node = children[node, 0] if is_left else children[node, 1]
            leaves[i, t] = node


# sums over targets may be split into lanes
@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def grow_tree(codes, others, targets, weights, n_bins, n_tried, seed, feature, ends, children):
    """Grow a regression tree of many targets by least squares; return the number of its nodes.

    codes (d, n): the bin of each value, below ``n_bins``, in the order of values.
    others: usual (d,), starts (d + 1,), rows: the bin of most rows, negative for a feature without, and the
        rows in its other bins, ``rows[starts[f] : starts[f + 1]]``.
    targets (n, k), weights (n,): in single precision; rows of weight 0 take no part.
    n_tried: features to try per node, drawn by ``seed``, not 0; more until one is not constant.
    feature, ends, children: filled as in :func:`find_leaves`; ``ends`` (m, 2) has the last bin of the first
        child and the first bin of the second one, among the node's rows.
    """
    d, k = len(codes), targets.shape[1]
    rows = np.flatnonzero(weights).astype(np.int32)
    begins, stops = np.zeros(2 * len(rows), np.int64), np.full(2 * len(rows), len(rows))
    order, spare, filled = np.arange(d), np.empty(len(rows), np.int32), np.empty(n_bins, np.int64)
    here, own = np.empty((len(rows), k), np.float32), np.empty(len(rows), np.float32)
    nodes = np.where(weights > 0, 0, -1).astype(np.int32)
    sums, counts = np.empty((n_bins, k), np.float32), np.zeros(n_bins, np.float32)
    total, left = np.empty(k, np.float32), np.empty(k, np.float32)
    n_nodes, node = 1, 0
    while node < n_nodes:
        first, m = begins[node], stops[node] - begins[node]
        weight, square, differs = np.float32(0.0), np.float32(0.0), False
        total[:] = 0
        for i in range(m):
            row = rows[first + i]
            own[i] = weights[row]
            weight += own[i]
            for j in range(k):
                here[i, j] = own[i] * targets[row, j]
                total[j] += here[i, j]
                differs |= targets[row, j] != targets[rows[first], j]
        for j in range(k):
            square += total[j] * total[j]
        best, feature[node] = -np.inf, -1
        for place in range(d if differs else 0):
            if place >= n_tried and feature[node] >= 0:
                break
            seed = _draw(order, place, seed)
            tried = order[place]
            column, usual, listed = codes[tried], others[0][tried], others[1][tried : tried + 2]
            if usual >= 0 and listed[1] - listed[0] < m:
                found, whole = others[2][listed[0] : listed[1]], (m, weight, total)
                _add_others(column, found, nodes, node, weights, targets, whole, usual, sums, counts)
            else:
                _add_rows(column, rows[first : first + m], own, here, sums, counts)
            n_filled = _filled_bins(counts, filled)
            before = np.float32(0.0)
            left[:] = 0
            for i in range(n_filled - 1):
                code = filled[i]
                before += counts[code]
                above = product = np.float32(0.0)
                for j in range(k):
                    left[j] += sums[code, j]
                    above += left[j] * left[j]
                    product += left[j] * total[j]
                gain = above / before + (square - 2 * product + above) / (weight - before)
                if gain > best:
                    best, feature[node] = gain, tried
                    ends[node, 0], ends[node, 1] = code, filled[i + 1]
        if feature[node] >= 0:
            column, own_rows = codes[feature[node]], rows[first : first + m]
            n_left = first + _first_rows(column, ends[node, 0], own_rows, spare, nodes, n_nodes)
            begins[n_nodes], stops[n_nodes] = first, n_left
            begins[n_nodes + 1], stops[n_nodes + 1] = n_left, first + m
            children[node, 0], children[node, 1] = n_nodes, n_nodes + 1
            n_nodes += 2
        node += 1
    return n_nodes


@njit(**INNER)
def _draw(order, place, seed):
    """Move a random one of the features from a place on to this place; return the next seed."""
    seed ^= seed >> np.uint64(12)
    seed ^= seed << np.uint64(25)
    seed ^= seed >> np.uint64(27)
    other = place + np.int64(seed >> np.uint64(11)) % (len(order) - place)
    order[place], order[other] = order[other], order[place]
    return seed


@njit(**INNER)
def _first_rows(column, last, rows, spare, nodes, child):
    """Move rows whose bin is at most ``last``, those of ``child``, to the front, in order; count them."""
    n_left, n_right = 0, 0
    for i in range(len(rows)):
        if column[rows[i]] <= last:
            rows[n_left], nodes[rows[i]] = rows[i], child
            n_left += 1
        else:
            spare[n_right], nodes[rows[i]] = rows[i], child + 1
            n_right += 1
    rows[n_left:] = spare[:n_right]
    return n_left


@njit(**INNER)
def _add_rows(column, rows, own, here, sums, counts):
    """Sum the weights ``own`` and targets ``here`` of rows by bin."""
    counts[:] = 0
    for i in range(len(rows)):
        code = column[rows[i]]
        if counts[code] == 0:
            for j in range(here.shape[1]):
                sums[code, j] = here[i, j]
        else:
            for j in range(here.shape[1]):
                sums[code, j] += here[i, j]
        counts[code] += own[i]


@njit(**INNER)
def _add_others(column, found, nodes, node, weights, targets, whole, usual, sums, counts):
    """Sum weights and targets of rows outside the usual bin, which has the rest of those of the node.

    whole: the number of the node's rows, and the sums of their weights and targets.
    """
    m, weight, total = whole
    counts[:], sums[usual] = 0, total
    for row in found:
        if nodes[row] == node:
            code = column[row]
            if counts[code] == 0:
                sums[code] = 0
            for j in range(len(total)):
                sums[code, j] += weights[row] * targets[row, j]
                sums[usual, j] -= weights[row] * targets[row, j]
            counts[code] += weights[row]
            weight, m = weight - weights[row], m - 1
    counts[usual] = max(weight, _LEAST) if m else 0


@njit(**INNER)
def _filled_bins(counts, filled):
    """List the bins that have rows; return their number."""
    n_filled = 0
    for code in range(len(counts)):
        if counts[code] > 0:
            filled[n_filled] = code
            n_filled += 1
    return n_filled
