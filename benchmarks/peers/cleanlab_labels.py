"""Scores of cleanlab for entries of label matrices, from out-of-fold probabilities.

Run by ``benchmarks.label_errors`` in the peers' environment, as ``cleanlab_labels.py IN.npz OUT.npz``: IN has
``probabilities`` (n, L) and ``labels`` (n, L) of 0 and 1, OUT one table per method, with larger values for
more suspicious entries.
"""

import sys

import numpy as np
from cleanlab.internal.multilabel_utils import onehot2int
from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class
from cleanlab.rank import get_label_quality_scores

_METHODS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


def main() -> None:
    given = np.load(sys.argv[1])
    probabilities, labels = given["probabilities"], given["labels"].astype(int)
    found = {method: np.empty_like(probabilities) for method in _METHODS}
    for label in range(labels.shape[1]):
        pairs = np.column_stack([1.0 - probabilities[:, label], probabilities[:, label]])
        for method in _METHODS:
            found[method][:, label] = -get_label_quality_scores(labels[:, label], pairs, method=method)
    flagged = find_multilabel_issues_per_class(onehot2int(labels), probabilities)
    found["filter"] = found["self_confidence"] + 2.0 * np.asarray(flagged)
    np.savez(sys.argv[2], **found)


if __name__ == "__main__":
    main()
