"""What is said of a rank and a regularization that were chosen by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["choice_facts", "choice_words", "fits_to_folds", "has_choice"]

Facts = dict[str, Any]

_COLUMNS = ("rank", "regularization", "mean_test_score", "std_test_score")


def has_choice(classifier: Any) -> bool:
    """Say whether a fitted classifier chose among pairs of rank and regularization."""
    return hasattr(classifier, "cv_results_")


def choice_words(classifier: Any) -> str:
    """Say what was chosen, and among what.

    Returns the pair, its score and the number of pairs and folds.
    """
    pairs, folds = len(classifier.cv_results_["rank"]), classifier.n_splits_
    how = "the best of" if classifier.rule == "best" else "within a standard error of the best of"
    ending = " (interrupted)" if classifier.search_status_ == "interrupted" else ""
    score = -classifier.best_score_ if classifier.scoring == "loss" else classifier.best_score_
    return (
        f"rank {classifier.best_rank_}, regularization {classifier.best_regularization_:.4g}, {how} {pairs} "
        f"pairs on {folds} folds: mean {classifier.scoring} {score:.4g}{ending}"
    )


def choice_facts(classifier: Any) -> Facts:
    """Describe the choice.

    Returns the pair, and the scores of all pairs.
    """
    table = [np.asarray(classifier.cv_results_[name]).tolist() for name in _COLUMNS]
    return {
        "rank": classifier.best_rank_,
        "regularization": classifier.best_regularization_,
        "score": classifier.best_score_,
        "scoring": classifier.scoring,
        "rule": classifier.rule,
        "folds": classifier.n_splits_,
        "status": classifier.search_status_,
        "pairs": [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*table, strict=True)],
        "summary": choice_words(classifier),
    }


def fits_to_folds(classifier: Any) -> tuple[int, int]:
    """Count the fits to folds.

    all: how many there are without an interrupt.
    """
    folds = [classifier.cv_results_[f"split{fold}_test_score"] for fold in range(classifier.n_splits_)]
    return int(np.isfinite(folds).sum()), int(np.size(folds))
