"""What the dual distributions expect, and how those of two components become one."""

from __future__ import annotations

import numpy as np

from labelweave._loops.compiling import njit
from labelweave._loops.structured.arrays import INNER, LABELS, LOOP

__all__ = ["clique_moments", "component_means", "expected_costs", "merge_components", "pair_moments"]


@njit(**LOOP)
def component_means(layout, dual):  # type: ignore[no-untyped-def]
    """Write the means of the labels of components."""
    for row in range(len(dual.means)):
        for component in range(layout.components.shape[1] - 1):
            for place in range(
                layout.components[LABELS, component], layout.components[LABELS, component + 1]
            ):
                label, mean = layout.labels[place], 0.0
                for vertex in range(dual.shares.shape[1]):
                    if dual.vertices[row, vertex, label]:
                        mean += dual.shares[row, vertex, component]
                dual.means[row, label] = mean


@njit(**LOOP)
def expected_costs(data, dual):  # type: ignore[no-untyped-def]
    """Sum the weighted costs that the distributions, by their means, expect."""
    total = 0.0
    for row in range(len(dual.means)):
        cost = 0.0
        for label in range(dual.means.shape[1]):
            if data.observed[row, label]:
                mean = dual.means[row, label]
                if data.targets[row, label]:
                    cost += data.costs[1, label] * (1.0 - mean)
                else:
                    cost += data.costs[0, label] * mean
        total += data.weights[row] * cost
    return total


@njit(**INNER)
def _part_marginal(row, bits, home, labels, dual, marginal):  # type: ignore[no-untyped-def]
    """Write the distribution of the states of some of a clique's labels, which share a component."""
    for state in range(len(marginal)):
        marginal[state] = 0.0
    if home < 0:
        bit = 0
        while not bits >> bit & 1:
            bit += 1
        mean = dual.means[row, labels[bit]]
        marginal[0], marginal[bits] = 1.0 - mean, mean
        return
    for vertex in range(dual.shares.shape[1]):
        share = dual.shares[row, vertex, home]
        if share != 0.0:
            state = 0
            for bit in range(len(labels)):
                if bits >> bit & 1 and dual.vertices[row, vertex, labels[bit]]:
                    state |= 1 << bit
            marginal[state] += share


@njit(**LOOP)
def clique_moments(labels, homes, targets, dual, marginal, moments):  # type: ignore[no-untyped-def]
    """Write, for every row, the true state of a clique as a unit vector less the expected one.

    ``homes`` has the component of every label of the clique, -1 where it is alone; distributions of
    different components are independent.
    """
    n_states = 1 << len(labels)
    for row in range(len(targets)):
        for state in range(n_states):
            moments[row, state] = -1.0
        done = 0
        for bit in range(len(labels)):
            if done >> bit & 1:
                continue
            bits = 1 << bit
            for other in range(bit + 1, len(labels)):
                if homes[bit] >= 0 and homes[other] == homes[bit]:
                    bits |= 1 << other
            done |= bits
            _part_marginal(row, bits, homes[bit], labels, dual, marginal)
            for state in range(n_states):
                moments[row, state] *= marginal[state & bits]
        true = 0
        for bit in range(len(labels)):
            true |= int(targets[row, labels[bit]] != 0) << bit
        moments[row, true] += 1.0


@njit(**INNER)
def _expected_product(row, one, other, home, dual):  # type: ignore[no-untyped-def]
    """Expect the product of the signs of two labels of one component."""
    total = 0.0
    for vertex in range(dual.shares.shape[1]):
        same = (dual.vertices[row, vertex, one] != 0) == (dual.vertices[row, vertex, other] != 0)
        total += dual.shares[row, vertex, home] if same else -dual.shares[row, vertex, home]
    return total


@njit(**LOOP)
def pair_moments(label, others, homes, targets, dual, moments):  # type: ignore[no-untyped-def]
    """Write the product of two labels' true signs less the expected one, for every row and other label."""
    for row in range(len(targets)):
        sign = 2.0 * targets[row, label] - 1.0
        mean = 2.0 * dual.means[row, label] - 1.0
        for place in range(len(others)):
            other = others[place]
            true = sign * (2.0 * targets[row, other] - 1.0)
            if homes[label] >= 0 and homes[other] == homes[label]:
                expected = _expected_product(row, label, other, homes[label], dual)
            else:
                expected = mean * (2.0 * dual.means[row, other] - 1.0)
            moments[row, place] = true - expected


@njit(**INNER)
def _read_part(row, labels, first, end, home, dual, shares, vertices):  # type: ignore[no-untyped-def]
    """List the vertices of a part; return how many."""
    count = 0
    if home < 0:
        for value in range(2):
            share = dual.means[row, labels[first]] if value else 1.0 - dual.means[row, labels[first]]
            if share > 0.0:
                shares[count], vertices[count, labels[first]] = share, value
                count += 1
        return count
    for vertex in range(dual.shares.shape[1]):
        if dual.shares[row, vertex, home] > 0.0:
            shares[count] = dual.shares[row, vertex, home]
            for place in range(first, end):
                vertices[count, labels[place]] = dual.vertices[row, vertex, labels[place]]
            count += 1
    return count


@njit(**INNER)
def _couple(count, more, shares, capacity, pairs):  # type: ignore[no-untyped-def]
    """List pairs of vertices of a joint distribution, the shares in ``shares[2]``; return how many.

    Independent if there is room for all pairs; else the shares of both are laid along one line, which makes
    fewer pairs with the same margins.
    """
    found, one, other, left, right = 0, 0, 0, shares[0, 0], shares[1, 0]
    is_product = count * more <= capacity
    while one < count and other < more:
        weight = shares[0, one] * shares[1, other] if is_product else min(left, right)
        if weight > 0.0:
            pairs[found, 0], pairs[found, 1], shares[2, found] = one, other, weight
            found += 1
        if is_product:
            one, other = (one, other + 1) if other + 1 < more else (one + 1, 0)
            continue
        left, right = left - weight, right - weight
        if left <= right:
            one += 1
            left = shares[0, one] if one < count else 0.0
        else:
            other += 1
            right = shares[1, other] if other < more else 0.0
    return found


@njit(**INNER)
def _keep_largest(found, capacity, pairs, shares):  # type: ignore[no-untyped-def]
    """Drop the pairs of smallest share until there is room; return how many are left."""
    while found > capacity:
        small = 0
        for place in range(found):
            if shares[2, place] < shares[2, small]:
                small = place
        found -= 1
        pairs[small, 0], pairs[small, 1] = pairs[found, 0], pairs[found, 1]
        shares[2, small] = shares[2, found]
    return found


@njit(**LOOP)
def merge_components(parts, labels, homes, dual, component, new_shares, new_vertices):  # type: ignore[no-untyped-def]
    """Write the joint distribution of parts, each some labels with one home, as one component's.

    Part p has the labels ``parts[p]`` to ``parts[p + 1]``.  Margins are kept but where vertices outnumber the
    places; then those of smallest share go.
    """
    capacity, n_labels = new_shares.shape[1], new_vertices.shape[2]
    size = max(4, 2 * capacity)
    shares, vertices = np.zeros((3, size)), np.zeros((3, size, n_labels), np.int8)
    pairs = np.zeros((size, 2), np.int64)
    for row in range(len(new_shares)):
        count = _read_part(row, labels, 0, parts[1], homes[0], dual, shares[0], vertices[0])
        for part in range(1, len(parts) - 1):
            first, end = parts[part], parts[part + 1]
            more = _read_part(row, labels, first, end, homes[part], dual, shares[1], vertices[1])
            count = _keep_largest(_couple(count, more, shares, capacity, pairs), capacity, pairs, shares)
            for place in range(count):
                for number in range(end):
                    side = 0 if number < first else 1
                    vertices[2, place, labels[number]] = vertices[side, pairs[place, side], labels[number]]
            for place in range(count):
                shares[0, place] = shares[2, place]
                for number in range(end):
                    vertices[0, place, labels[number]] = vertices[2, place, labels[number]]
        total = 0.0
        for place in range(count):
            total += shares[0, place]
        for place in range(count):
            new_shares[row, place, component] = shares[0, place] / total
            for number in range(len(labels)):
                new_vertices[row, place, labels[number]] = vertices[0, place, labels[number]]
