"""Thresholds by trying every combination, and metrics by their definition; slow and readable."""

import itertools

import numpy as np

MEASURES = ("micro_f1", "macro_f1", "example_f1", "hamming_loss")


def f1(hits, predicted, positives):
    return 2 * hits / (predicted + positives) if predicted + positives else 0.0


def measure(name, signs, predicted):
    """Measure predicted sets on observed entries; signs are +1, -1 and 0 for unobserved."""
    seen, positive = signs != 0, signs > 0
    if not seen.any():
        return 0.0
    predicted = predicted & seen
    hits = predicted & positive
    if name == "hamming_loss":
        return (predicted != positive)[seen].mean()
    if name == "micro_f1":
        return f1(hits.sum(), predicted.sum(), positive.sum())
    axis = 0 if name == "macro_f1" else 1
    lines = zip(hits.sum(axis), predicted.sum(axis), positive.sum(axis), strict=True)
    defined = seen.any(axis)
    return np.mean([f1(*line) for line, kept in zip(lines, defined, strict=True) if kept])


def column_thresholds(scores):
    """One threshold for every set of rows that a threshold can predict."""
    values = np.unique(scores)
    return [values[0] - 1, *(0.5 * (values[1:] + values[:-1])), values[-1]]


def best_by_label(name, signs, scores):
    columns = [column_thresholds(scores[:, label]) for label in range(scores.shape[1])]
    values = [measure(name, signs, scores > np.array(one)) for one in itertools.product(*columns)]
    return min(values) if name == "hamming_loss" else max(values)


def best_shared(name, signs, scores):
    values = [measure(name, signs, scores > one) for one in column_thresholds(scores)]
    return min(values) if name == "hamming_loss" else max(values)


def top_k(scores, k):
    """Predict the k best labels of every row; ties go to the lower number."""
    predicted = np.zeros(scores.shape, bool)
    for row, line in enumerate(scores):
        for label in sorted(range(len(line)), key=lambda label: (-line[label], label))[:k]:
            predicted[row, label] = True
    return predicted


def best_top_k(name, signs, scores):
    values = [measure(name, signs, top_k(scores, k)) for k in range(1, scores.shape[1] + 1)]
    return min(values) if name == "hamming_loss" else max(values)


def expected_f1(probabilities, labels, empty):
    """Average the F1 score of a predicted set over all true sets of independent labels."""
    expected = 0.0
    for truth in itertools.product((0, 1), repeat=len(probabilities)):
        weight = np.prod([p if t else 1 - p for p, t in zip(probabilities, truth, strict=True)])
        hits = sum(truth[label] for label in labels)
        size = len(labels) + sum(truth)
        expected += weight * (2 * hits / size if size else empty)
    return expected
