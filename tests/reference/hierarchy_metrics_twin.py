"""Slow, readable metrics of label sets in a hierarchy: sets of names, one row and class after the other."""

import math


def known(graph, names, row):
    """Return the classes that a row of 1, 0 and NaN has and lacks, with ancestors and descendants."""
    has = {name for name, entry in zip(names, row, strict=True) if entry == 1}
    has |= {up for name in has for up in graph.ancestors(name)}
    lacks = {name for name, entry in zip(names, row, strict=True) if entry == 0} - has
    lacks |= {down for name in lacks for down in graph.descendants(name)}
    return has, lacks


def closed(graph, names):
    return set(names) | {up for name in names for up in graph.ancestors(name)}


def all_classes(graph, names):
    return sorted(closed(graph, names), key=graph.nodes.index)


def rows_of_sets(graph, names, Y, predicted):
    """Return for every row its labels, those it is known to lack, and the predictions."""
    classes = set(all_classes(graph, names))
    below = {name: {name, *graph.descendants(name)} & set(names) for name in classes}
    found = []
    for row, guess in zip(Y, predicted, strict=True):
        has, lacks = known(graph, names, row)
        lacks |= {up for up in classes - set(names) if below[up] <= lacks}
        lacks &= classes
        guessed = closed(graph, [name for name, entry in zip(names, guess, strict=True) if entry == 1])
        found.append((has, lacks, guessed))
    return found


def counts(rows, leave_out):
    hit = sum(len((has & guessed) - leave_out) for has, _, guessed in rows)
    predicted = sum(len((guessed & (has | lacks)) - leave_out) for has, lacks, guessed in rows)
    positive = sum(len(has - leave_out) for has, _, _ in rows)
    return hit, predicted, positive


def share(above, below):
    return above / below if below else 0.0


def sibling_costs(graph):
    costs = {}
    for name in graph.nodes:
        ups = graph.parents.get(name, ())
        costs[name] = sum(costs[up] / len(graph.children(up)) for up in ups) if ups else 1 / len(graph.roots)
    return costs


def h_loss(graph, rows, costs):
    losses = []
    for has, lacks, guessed in rows:
        wrong = (has - guessed) | (guessed & lacks)
        if has | lacks:
            losses.append(sum(costs[name] for name in wrong if not wrong & set(graph.ancestors(name))))
    return sum(losses) / len(losses)


def information(graph, names, rows):
    found = {}
    for name in all_classes(graph, names):
        ups = graph.parents.get(name, ())
        seen = [has for has, lacks, _ in rows if name in has | lacks and all(up in has for up in ups)]
        found[name] = -math.log2((sum(name in has for has in seen) + 1) / (len(seen) + 1))
    return found


def predicted_at(graph, names, scores, threshold):
    """Take classes whose greatest score at or below them reaches the threshold."""
    place = {name: k for k, name in enumerate(names)}
    classes = all_classes(graph, names)
    below = {name: [place[d] for d in (name, *graph.descendants(name)) if d in place] for name in classes}
    return {name for name in classes if max(scores[k] for k in below[name]) >= threshold}


def fmax(graph, names, rows, scores, thresholds, leave_out):
    kept = [k for k, (has, _, _) in enumerate(rows) if has - leave_out]
    best = 0.0 if kept else math.nan
    for threshold in thresholds:
        precisions, recalls = [], []
        for k in kept:
            has, lacks, _ = rows[k]
            guessed = (predicted_at(graph, names, scores[k], threshold) & (has | lacks)) - leave_out
            recalls.append(len(guessed & has) / len(has - leave_out))
            if guessed:
                precisions.append(len(guessed & has) / len(guessed))
        if precisions:
            p, r = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
            best = max(best, share(2 * p * r, p + r))
    return best


def smin(graph, names, rows, scores, thresholds, bits):
    kept, best = [k for k, (has, _, _) in enumerate(rows) if has], math.inf
    if not kept:
        return math.nan
    for threshold in thresholds:
        remaining = wrong = 0.0
        for k in kept:
            has, lacks, _ = rows[k]
            guessed = predicted_at(graph, names, scores[k], threshold)
            remaining += sum(bits[name] for name in has - guessed)
            wrong += sum(bits[name] for name in guessed & lacks)
        best = min(best, math.hypot(remaining / len(kept), wrong / len(kept)))
    return best
