"""What each part of hierarchical classification gains on genes with several functions: AU(PRC), six sets.

One kernel logistic model with one setting throughout (RBF kernel on standardised features, 1,000 pivots,
``scale=3``, ``intercept_variance=100``), chosen on the valid rows of cellcycle FunCat, as was the smallest
leaf of the forests among 1, 5, 10 and 20; a line a variant:

independent    labels completed upwards, as all lines below but the next
not completed  fitted to the most specific classes of every row only
conditional    a label learned from rows that have its parents, probabilities multiplied down
tree prior     scores of labels correlated by what they have above them in common
forest kernel  the RBF kernel plus the proximity in a forest grown on all labels
random forest  that forest itself, its leaves' means of the labels

each with scores as they are, under max and under the projection.  Protocol and data of ``hierarchies.py``.
Results are put to those that the file has of other sets and parts.  The tree prior takes 20 minutes for the
4,126 labels of the Gene Ontology.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.hierarchy_parts``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor

from benchmarks.frame import RESULTS, flag, read_json, read_options, several, write_json
from benchmarks.hierarchies import agreement, edges, rows_of
from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA
from labelweave import HierarchicalClassifier, KernelLogisticClassifier, LabelCovariance, Taxonomy
from labelweave.datasets import LabeledData
from labelweave.kernels import ForestKernel, RBFKernel

_SETS = [f"{name}_{kind}" for kind in ("FUN", "GO") for name in ("cellcycle", "derisi", "pheno")]
_TREES, _LEAF, _MOST_TARGETS = 200, 10, 50


def _model(**options: Any) -> KernelLogisticClassifier:
    settings: dict[str, Any] = {
        "kernel": "rbf",
        "kernel_rank": 1000,
        "scale": 3.0,
        "intercept_variance": 100.0,
        "tol": 1e-2,
    }
    return KernelLogisticClassifier(**settings | options, hyperparameters="fixed")


def _taxonomy(fitted: LabeledData) -> tuple[Taxonomy, list[str]]:
    assert fitted.taxonomy is not None, "the files have one"
    return fitted.taxonomy, [str(name) for name in np.asarray(fitted.label_names)]


def _independent(fitted: LabeledData, X: Any) -> Any:
    return _model().fit(fitted.X, fitted.Y).predict_proba(X)


def _not_completed(fitted: LabeledData, X: Any) -> Any:
    taxonomy, names = _taxonomy(fitted)
    above, below = edges(taxonomy, names)
    has_child = sp.csr_array((np.ones(len(above)), (below, above)), shape=(len(names),) * 2)
    Y = fitted.Y.to_dense()
    return _model().fit(fitted.X, np.where(Y @ has_child > 0, 0, Y)).predict_proba(X)


def _conditional(fitted: LabeledData, X: Any) -> Any:
    model = HierarchicalClassifier(_model(), _taxonomy(fitted)[0], "none", conditional=True)
    return model.fit(fitted.X, fitted.Y).predict_proba(X)


def _tree_prior(fitted: LabeledData, X: Any) -> Any:
    prior = LabelCovariance.from_taxonomy(*_taxonomy(fitted), normalized=True)
    return _model(label_covariance=prior).fit(fitted.X, fitted.Y).predict_proba(X)


def _forest(fitted: LabeledData) -> RandomForestRegressor:
    Y = fitted.Y.to_dense()
    targets = PCA(min(_MOST_TARGETS, *Y.shape), random_state=0).fit_transform(Y)
    forest = RandomForestRegressor(_TREES, max_features="sqrt", min_samples_leaf=_LEAF, random_state=0)
    return forest.fit(fitted.X.astype(np.float32), targets)


def _forest_kernel(fitted: LabeledData, X: Any) -> Any:
    kernel = RBFKernel("scale") + ForestKernel.of(_forest(fitted))
    return _model(kernel=kernel).fit(fitted.X, fitted.Y).predict_proba(X)


def _random_forest(fitted: LabeledData, X: Any) -> Any:
    forest, Y = _forest(fitted), fitted.Y.to_dense()
    train, test = (forest.apply(rows.astype(np.float32)) for rows in (fitted.X, X))
    scores = np.zeros((len(X), Y.shape[1]))
    for mine, theirs in zip(train.T, test.T, strict=True):
        leaves, places = np.unique(mine, return_inverse=True)
        shares = sp.csr_array((np.ones(len(mine)), (places, np.arange(len(mine)))))
        shares = sp.diags_array(1 / shares.sum(axis=1)) @ shares
        scores += (shares @ Y)[np.searchsorted(leaves, theirs)]
    return scores / _TREES


_PARTS: dict[str, Callable[[LabeledData, Any], Any]] = {
    "independent": _independent,
    "not completed": _not_completed,
    "conditional": _conditional,
    "tree prior": _tree_prior,
    "forest kernel": _forest_kernel,
    "random forest": _random_forest,
}


@needs_data
def main() -> None:
    chosen = read_options(
        __doc__,
        sets=_SETS,
        parts=several(_PARTS),
        data=flag(DEFAULT_DATA, "the folder that has hmc/"),
        out=RESULTS / "hierarchy_parts.json",
    )
    warnings.simplefilter("ignore")
    results: dict[str, Any] = read_json(chosen.out)
    for name in chosen.sets:
        fitted, test = rows_of(name, chosen.data)
        scale = np.maximum(fitted.X.std(axis=0), 1e-12)
        means = fitted.X.mean(axis=0)
        fitted, X = LabeledData((fitted.X - means) / scale, fitted.Y, parents=fitted.parents), test.X
        results[name] = results.get(name, {}) | {"rows": len(fitted), "labels": fitted.Y.n_labels}
        for part in chosen.parts:
            clock = time.process_time()
            scores = _PARTS[part](fitted, (X - means) / scale)
            found = {"processor seconds": time.process_time() - clock} | agreement(scores, fitted, test.Y)
            results[name][part] = found | {"measured": describe_machine()}
            print(name, part, {key: round(value, 4) for key, value in found.items()}, flush=True)
            write_json(chosen.out, results)


if __name__ == "__main__":
    main()
