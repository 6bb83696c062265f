"""Genes with several functions in a hierarchy: AU(PRC) with and without consistent predictions.

The protocol is that of C-HMCNN (Giunchiglia and Lukasiewicz 2020): fits to train and valid rows together, the
area under the precision-recall curve of all entries of the test rows, without roots of the hierarchies.
Every model has its defaults, so that nothing is chosen.  Missing features are replaced by the means of the
training rows.  "C-HMCNN" is the figure of that paper.  "violations" is the share of pairs of a label and its
parent whose scores are in the wrong order before the hierarchy is enforced.

``--time-budget 1800`` lets AutoLabelClassifier fit all its members and trees on the Gene Ontology too.
"""

import warnings
from typing import Any

import numpy as np

import labelweave as lw
from benchmarks.frame import RESULTS, command, cost_of, flag, save, timed
from benchmarks.problems import DEFAULT_DATA
from labelweave.datasets import LabeledData, read_hierarchical_arff
from labelweave.metrics import average_precision_score
from labelweave.postprocessing import enforce_hierarchy

_STATED = {"cellcycle_FUN": 0.255, "derisi_FUN": 0.195, "cellcycle_GO": 0.413, "derisi_GO": 0.370}
_ROOTS = {"root", "GO0003674", "GO0005575", "GO0008150"}
_MODELS: dict[str, Any] = {
    "auto": lw.AutoLabelClassifier,
    "kernel logistic": lambda: lw.KernelLogisticClassifier(scaling="standard"),
}


def rows_of(name: str) -> tuple[LabeledData, LabeledData]:
    """Read the training and the test rows; replace missing features by means of the training rows."""
    parts = [
        read_hierarchical_arff(DEFAULT_DATA / "hmc" / f"{name}.{part}.arff")
        for part in ("train", "valid", "test")
    ]
    names = parts[0].label_names
    means = np.nanmean(np.vstack([part.X for part in parts[:2]]), axis=0)
    X = [np.where(np.isnan(part.X), means, part.X) for part in parts]
    Y = lw.LabelMatrix.from_any(np.vstack([part.Y.to_dense() for part in parts[:2]]), names)
    parents = parts[0].parents
    fitted = LabeledData(np.vstack(X[:2]), Y, parents=parents)
    return fitted, LabeledData(X[2], parts[2].Y, parents=parents)


def _measured(model: Any, fitted: LabeledData, test: LabeledData) -> dict[str, float]:
    assert fitted.taxonomy is not None, "the files have one"
    model = lw.HierarchicalClassifier(model, fitted.taxonomy, "none")
    scores, *spent = cost_of(lambda: model.fit(fitted.X, fitted.Y).predict_proba(test.X))
    found = dict(zip(("seconds", "processor seconds"), spent, strict=True))
    return found | agreement(scores, fitted, test.Y)


def edges(taxonomy: lw.Taxonomy, names: list[str]) -> Any:
    """Return the numbers of the parent and the child label of every edge between two labels."""
    place = {name: k for k, name in enumerate(names)}
    pairs = ((place.get(up), place.get(down)) for up, down in taxonomy.pairs())
    return np.array([pair for pair in pairs if None not in pair]).T


def agreement(scores: Any, fitted: LabeledData, truth: lw.LabelMatrix) -> dict[str, float]:
    """Measure scores (n, L) of the test rows, before and after enforcement."""
    taxonomy, names = fitted.taxonomy, [str(name) for name in np.asarray(fitted.label_names)]
    assert taxonomy is not None, "the files have one"
    counted = np.flatnonzero([name not in _ROOTS for name in names])
    truth, (above, below) = truth.select_labels(counted), edges(taxonomy, names)
    found = {"violations": float((scores[:, above] < scores[:, below]).mean())}
    found["none"] = float(average_precision_score(truth, scores[:, counted]))
    for how in ("max", "projection"):
        enforce_hierarchy(scores[:2], taxonomy, names, how)  # compiles
        obeying, found[f"{how} processor seconds"] = timed(enforce_hierarchy, scores, taxonomy, names, how)
        found[how] = float(average_precision_score(truth, obeying[:, counted]))
    return found


@command(
    sets=_STATED,
    models=_MODELS,
    time_budget=flag(help="seconds that the one call may plan for", type=float),
    out=RESULTS / "hierarchies.json",
)
def main(chosen: Any) -> None:
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    for name in chosen.sets:
        results[name] = {"C-HMCNN": _STATED.get(name)}
        rows = rows_of(name)
        for model in chosen.models:
            made = _MODELS[model]()
            if model == "auto":
                made.set_params(time_budget=chosen.time_budget)
            results[name][model] = _measured(made, *rows)
            print(name, model, results[name][model], flush=True)
            save(chosen.out, results)
