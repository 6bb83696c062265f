"""Scores of cleanlab for entries of label matrices, from out-of-fold probabilities.

``benchmarks.label_errors`` gives ``probabilities`` (n, L) and ``labels`` (n, L) of 0 and 1; the answer has
one table per method, with larger values for more suspicious entries.
"""

import numpy as np
from cleanlab.internal.multilabel_utils import onehot2int
from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class
from cleanlab.rank import get_label_quality_scores

from benchmarks.peers.exchange import Arrays, answer

_METHODS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


@answer
def main(given: Arrays, _: str) -> Arrays:
    probabilities, labels = given["probabilities"], given["labels"].astype(int)
    found = {method: np.empty_like(probabilities) for method in _METHODS}
    for label in range(labels.shape[1]):
        pairs = np.column_stack([1.0 - probabilities[:, label], probabilities[:, label]])
        for method in _METHODS:
            found[method][:, label] = -get_label_quality_scores(labels[:, label], pairs, method=method)
    flagged = find_multilabel_issues_per_class(onehot2int(labels), probabilities)
    return found | {"filter": found["self_confidence"] + 2.0 * np.asarray(flagged)}
