"""Iterative stratification with exact sizes, explicitly over a dense table of groups."""

import numpy as np


def twin_parts(table, sizes, extras, shares, draws):
    """Distribute the rows of a 0/1 table: rows in their order, of equally rare groups the first."""
    parts = np.full(len(table), -1)
    room = list(sizes)
    while (parts == -1).any():
        waiting = parts == -1
        left = table[waiting].sum(axis=0)
        group = None  # the rest has no groups
        if left.any():
            group = np.flatnonzero(left == left[left > 0].min())[0]
            waiting &= table[:, group] == 1
        for row in np.flatnonzero(waiting):
            keys = {
                part: key(table, parts == part, row, group, (shares[part], sum(shares)))
                for part in range(len(room))
                if room[part] > 0 or (room[part] == 0 and extras)
            }
            tied = [part for part in keys if keys[part] == min(keys.values())]
            parts[row] = tied[draws[row] % len(tied)]
            extras -= room[parts[row]] == 0
            room[parts[row]] -= 1
    return parts


def key(table, mine, row, group, shares):
    """How far the part exceeds its share of the group with the row; what it has of the row's groups; of rows.

    The least gets the row.  ``shares`` are the part's and the sum of all.
    """
    share, total = shares
    taken = table[mine].sum(axis=0)
    excess = 0 if group is None else max(0, (taken[group] + 1) * total - table[:, group].sum() * share)
    of_own = 0.0
    for own in np.flatnonzero(table[row]):
        of_own += (taken[own] + 0.5) / share / table[:, own].sum()
    return excess, 0.0 if group is None else of_own, (mine.sum() + 0.5) / share


def paper_folds(table, n_folds, generator):
    """Algorithm 1 of Sechidis, Tsoumakas and Vlahavas (2011) for folds of one size, as printed."""
    folds = np.full(len(table), -1)
    desired = np.full(n_folds, len(table) / n_folds)
    desired_of = np.tile(table.sum(axis=0) / n_folds, (n_folds, 1))
    while (folds == -1).any():
        left = table[folds == -1].sum(axis=0)
        label = generator.permutation(np.flatnonzero(left == left[left > 0].min()))[0] if left.any() else None
        waiting = (folds == -1) & (True if label is None else table[:, label] == 1)
        for row in np.flatnonzero(waiting):
            first = desired if label is None else desired_of[:, label]
            tied = np.flatnonzero(first == first.max())
            tied = tied[desired[tied] == desired[tied].max()]
            folds[row] = generator.permutation(tied)[0]
            desired[folds[row]] -= 1
            desired_of[folds[row]] -= table[row]
    return folds


def frequency_deviation(table, folds):
    """The mean absolute difference of a label's frequency in a fold and in all rows."""
    frequencies = [table[folds == fold].mean(axis=0) for fold in range(folds.max() + 1)]
    return np.abs(np.array(frequencies) - table.mean(axis=0)).mean()
