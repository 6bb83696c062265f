"""A grid search with missing labels
=================================

Run scikit-learn's grid search over a pipeline when a third of the labels are missing.

With stratified splitters for labels and scorers that ignore unobserved entries, ``GridSearchCV`` works on
such targets as on any others, without a loop of your own.  A model that treats every missing label as absent
is searched in the same way, and both are evaluated on rows whose labels are all known.  Run ``python
examples/search_with_gaps.py``; it takes some seconds.
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/search_with_gaps.png'
from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelweave import MaxMarginClassifier, metrics
from labelweave.splits import IterativeStratifiedKFold

GAPS = 0.35


def main() -> dict[str, float]:
    """Search twice; return the scores on fully labeled rows."""
    X, Y = make_rows(900)
    random = np.random.default_rng(1)
    gaps = np.where(random.random((600, Y.shape[1])) < GAPS, np.nan, Y[:600])
    targets = {"unobserved": gaps, "taken for no": np.nan_to_num(gaps)}
    found = {}
    print(f"{np.isnan(gaps).mean():.0%} of the training labels are not observed")
    for name, target in targets.items():
        chosen = search(X[:600], target)
        predicted = chosen.predict(X[600:])
        found[name] = float(metrics.f1_score(Y[600:], predicted, average="macro"))
        words = ", ".join(f"{key.split('__')[1]} {value}" for key, value in chosen.best_params_.items())
        print(f"gaps {name:13s} macro-F1 {found[name]:.3f} with {words}; in folds {chosen.best_score_:.3f}")
    return found


def search(X: Any, Y: Any) -> GridSearchCV:
    """Choose C, the kernel and the weights of classes on stratified folds."""
    grid = {
        "maxmarginclassifier__C": [0.1, 1.0, 10.0],
        "maxmarginclassifier__kernel": ["linear", "rbf"],
        "maxmarginclassifier__class_weight": [None, "balanced"],
    }
    model = make_pipeline(StandardScaler(), MaxMarginClassifier(tol=1e-2))
    folds = IterativeStratifiedKFold(3, shuffle=True, random_state=0)
    return GridSearchCV(model, grid, scoring=metrics.get_scorer("macro_f1"), cv=folds).fit(X, Y)


def make_rows(count: int) -> tuple[Any, Any]:
    """Make rows with features of very different scales, and labels with common causes."""
    random = np.random.default_rng(0)
    causes = random.normal(size=(count, 4))
    X = causes @ random.normal(size=(4, 10)) + 0.3 * random.normal(size=(count, 10))
    scores = causes @ random.normal(size=(4, 5)) - np.linspace(0.0, 2.0, 5)
    return X * np.logspace(-2, 3, 10), (scores + 0.3 * random.normal(size=scores.shape) > 0).astype(float)


if __name__ == "__main__":
    main()
