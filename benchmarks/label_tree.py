"""A tree over labels compared with one-vs-rest: quality, time, memory, size, speed and proofs.

    python -m benchmarks.label_tree --cases bibtex delicious debtags
    python -m benchmarks.label_tree --cases texts --models "one-vs-rest, hinge" \
        "one-vs-rest, hinge, all weights" --jobs 2 --rows 36000 --features 50000 --labels 3000 \
        --labels-per-row 5 --test-rows 4000
    OMP_NUM_THREADS=2 python -m benchmarks.label_tree --cases texts --models default --jobs 2 \
        --rows 500000 --features 135000 --labels 670000 --test-rows 2000

Cases: ``wordnet``, from the gloss of a noun to its parent nouns (Debian's ``wordnet-base``; labels with two
rows or more); ``bibtex``, ``debtags`` and ``delicious``; ``texts``, synthetic texts whose labels follow a
power law.  Test rows without a label are dropped.  Every model is measured in a separate process, fitted on
one thread unless ``--jobs`` changes this; times are CPU seconds.

``--rare`` ranks rare labels higher on a held-out tenth of the training rows; test rows are not used.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import labelweave as lw
from benchmarks.frame import RESULTS, command, cost_of, flag, read_json, timed, write_json
from benchmarks.machine import describe_machine, in_own_process, peak_memory_bytes
from benchmarks.problems import read_parts
from benchmarks.wordnet import parts_of, read_nouns
from labelweave import LabelMatrix, LabelTreeClassifier, MaxMarginClassifier
from labelweave.datasets import LabeledData, make_text_like
from labelweave.metrics import precision_at_k, propensities, propensity_scored_precision_at_k
from labelweave.postprocessing import favor_rare_labels

_BUDGETS = (4, 16, 64, None)
_REPEATS = 3
_TOP = 5
_RARE = "rare labels moved up: "
_POWERS, _MOVED = (0.0, 0.25, 0.5, 1.0), 50  # of propensities, and labels of a row that are sorted again

_CERTIFIED: dict[str, Any] = {"tol": 1e-2, "prune": "certified"}  # pruned within a gap of 0.01

MODELS: dict[str, Callable[[], Any]] = {
    "default": LabelTreeClassifier,
    "tree": lambda: LabelTreeClassifier(**_CERTIFIED, n_trees=1),
    "tree, beam of 10": lambda: LabelTreeClassifier(**_CERTIFIED, n_trees=1, beam=10),
    "three trees": lambda: LabelTreeClassifier(**_CERTIFIED, n_trees=3),
    "default, hinge": lambda: LabelTreeClassifier(loss="hinge"),
    "one-vs-rest": lambda: LabelTreeClassifier(**_CERTIFIED, negatives="all"),
    "one-vs-rest, hinge": lambda: MaxMarginClassifier(**_CERTIFIED),
    "one-vs-rest, hinge, all weights": lambda: MaxMarginClassifier(tol=1e-2),
}
MOVED: dict[str, Callable[[], Any]] = {
    "default": LabelTreeClassifier,
    "unbiased": lambda: LabelTreeClassifier(flip_rates="propensity"),
    "one-vs-rest": MODELS["one-vs-rest"],
}


def load_case(name: str, options: Any) -> tuple[LabeledData, LabeledData]:
    if name == "wordnet":
        train, test = _wordnet(options.dict / "data.noun")
    elif name == "texts":
        n = options.rows
        sizes = n + options.test_rows, options.features, options.labels
        data = make_text_like(*sizes, labels_per_row=options.labels_per_row)
        train, test = LabeledData(data.X[:n], data.Y[:n]), LabeledData(data.X[n:], data.Y[n:])
    else:
        train, test = read_parts(name)
    has_some = np.flatnonzero(np.diff(test.Y.positives.indptr))
    return train, LabeledData(test.X[has_some], test.Y[has_some])


def _wordnet(path: Path) -> tuple[LabeledData, LabeledData]:
    _, glosses, above = read_nouns(path)
    Y = LabelMatrix.from_any([above[name] for name in glosses])
    train, test = parts_of(glosses, Y.select_labels(np.flatnonzero(Y.positive_counts() >= 2)))
    return LabeledData(*train), LabeledData(*test)


def measure_model(name: str, model: Any, train: LabeledData, test: LabeledData) -> dict[str, Any]:
    _, wall, seconds = cost_of(model.fit, train.X, train.Y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lw"
        lw.save(model, path)
        size = path.stat().st_size
    model.predict_top(test.X[:300], _TOP)  # compiles
    made = [timed(model.predict_top, test.X, _TOP) for _ in range(_REPEATS)]
    labels, scores = made[0][0]
    found = {
        "model": name,
        "fit_cpu_seconds": seconds,
        "fit_seconds": wall,
        "gap": float(model.duality_gap_),
        "weights": getattr(model, "pruning_", {}).get("weights"),
        "file_bytes": size,
        **quality(labels, scores, train.Y, test.Y),
        "rows_a_cpu_second": len(test.Y) / min(spent for _, spent in made),
        "peak_gigabytes": peak_memory_bytes() / 1e9,
    }
    if isinstance(model, LabelTreeClassifier) and len(model.label_trees_) == 1:
        found["proofs"] = [_proofs(model, test, budget) for budget in _BUDGETS]
        lists = {b: model.shortlist_recall(test.X, test.Y, _TOP, beam=b) for b in (1, 3, 10, 30)}
        found["shortlists"] = {
            str(b): {"labels_reached": one.reached, "best_kept": one.kept} for b, one in lists.items()
        }
    return found


def quality(labels: Any, scores: Any, known: LabelMatrix, truth: LabelMatrix) -> dict[str, float]:
    """Compute precision and propensity-scored precision at 1, 3 and 5, in percent, of best labels (n, 5)."""
    best = labels.shape[1] - np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    ends = labels.shape[1] * np.arange(len(labels) + 1)
    table = sp.csr_array((best.ravel().astype(float), labels.ravel(), ends), shape=truth.shape)
    table.sort_indices()
    weights = propensities(known)
    found = {f"precision_at_{k}": 100 * precision_at_k(truth, table, k) for k in (1, 3, 5)}
    for k in (1, 3, 5):
        found[f"propensity_scored_at_{k}"] = 100 * propensity_scored_precision_at_k(truth, table, weights, k)
    return {name: float(value) for name, value in found.items()}


def _proofs(model: LabelTreeClassifier, test: LabeledData, budget: int | None) -> dict[str, Any]:
    found, spent = timed(model.predict_top, test.X, _TOP, exact=True, budget=budget)
    return {
        "budget": budget,
        "proven": float(found.proven.mean()),
        "opened": float(found.opened.mean()),
        "nodes": model.label_trees_[0].n_nodes,
        "rows_a_cpu_second": len(test.Y) / spent,
    }


def spread_labels(train: LabeledData, count: int) -> LabelMatrix:
    order = np.argsort(-train.Y.positive_counts(), kind="stable")
    return train.Y.select_labels(np.sort(order[:: max(1, len(order) // count)][:count]))


def hold_out(train: LabeledData) -> tuple[LabeledData, LabeledData]:
    """Hold out a tenth of the training rows that have a label."""
    is_held = np.random.default_rng(1).random(len(train.Y)) < 0.1
    has_some = np.diff(train.Y.positives.indptr) > 0
    kept, held = np.flatnonzero(~is_held), np.flatnonzero(is_held & has_some)
    return LabeledData(train.X[kept], train.Y[kept]), LabeledData(train.X[held], train.Y[held])


def _moved(name: str, train: LabeledData) -> dict[str, Any]:
    """Rank rare labels higher by powers of propensities, on held-out training rows."""
    kept, held = hold_out(train)
    model, weights = MOVED[name]().fit(kept.X, kept.Y), propensities(kept.Y)
    labels, scores = model.predict_top(held.X, min(_MOVED, kept.Y.n_labels))
    found = {}
    for power in _POWERS:
        best = favor_rare_labels(labels, scores, weights, _TOP, power=power)
        found[f"power {power}"] = quality(*best, kept.Y, held.Y)
    return found


def _one(case: str, name: str, options: Any) -> dict[str, Any]:
    lw.set_config(memory_budget=1e4)
    train, test = load_case(case, options)
    sizes = {"rows": len(train.Y), "features": train.X.shape[1], "labels": train.Y.n_labels}
    sizes |= {"test_rows": len(test.Y), "labels_a_row": train.Y.positives.nnz / len(train.Y)}
    if name.startswith(_RARE):
        found = _moved(name.removeprefix(_RARE), train)
    else:
        found = measure_model(name, MODELS[name]().set_params(n_jobs=options.jobs), train, test)
    return {"sizes": sizes, "found": found}


def _names(case: str, options: Any) -> list[str]:
    if options.rare:
        return [_RARE + name for name in options.models or MOVED]
    usual = ["default", "tree"] if case == "texts" else list(MODELS)[:-1]
    return options.models or usual


@command(
    cases=flag(["bibtex", "delicious", "wordnet", "texts"], nargs="*"),
    models=flag(help="by name; by default all that take minutes", nargs="*"),
    rare=flag(False, "move rare labels up on held-out training rows"),
    dict=flag(Path("/usr/share/wordnet"), "has data.noun"),
    rows=flag(30_000, "of texts"),
    features=flag(20_000, "of texts"),
    labels=flag(50_000, "of texts"),
    labels_per_row=flag(3.0, "of texts"),
    test_rows=flag(5_000, "of texts"),
    jobs=flag(1, "threads of a fit"),
    out=RESULTS / "label_tree.json",
)
def main(options: Any) -> None:
    results: dict[str, Any] = read_json(options.out)
    for case in options.cases:
        for name in _names(case, options):
            made = in_own_process(_one, case, name, options)
            print(case, name, made["found"], flush=True)
            own = results.setdefault(case, {"sizes": made["sizes"], "models": {}})
            own["models"][name] = made["found"] | {"machine": describe_machine()}
            write_json(options.out, results)
