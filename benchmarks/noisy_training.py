"""Training on labels that are wrong: what correction recovers of the micro-F1 on clean test rows.

Training labels are flipped as in ``benchmarks.label_errors``, and ``find_label_errors`` with rates that it
estimates says which are wrong.  ``MaxMarginClassifier(C=1)`` is fitted to the clean labels, to the flipped
ones, and to ``corrected()`` ones: entries more likely wrong than right hidden, or flipped back.  One
threshold a model is the best for the micro-F1 on a fifth of the training rows, by the labels that the model
is fitted to.
``recovered`` is the share of the lost micro-F1.  Nothing is chosen on test rows.

    python -m benchmarks.noisy_training
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks.label_errors import DRAWS, NOISES, Array, flipped, left_out, training_rows
from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA
from benchmarks.results_file import write_json
from labelweave import MaxMarginClassifier, metrics
from labelweave.datasets import load_debtags, read_mulan
from labelweave.inference import calibrate_labels
from labelweave.labels import LabelMatrix
from labelweave.noise import find_label_errors

__all__ = ["main"]

_RESULTS = Path(__file__).parent / "results" / "noisy_training.json"
_KINDS = ("clean", "flipped", "hidden", "flipped back")


@needs_data
def main() -> None:
    """Measure, write the results, print the table."""
    arguments = _parse_arguments()
    if not arguments.show_recorded:
        results: dict[str, Any] = describe_machine() | {"draws": arguments.draws, "sets": {}}
        for name in arguments.sets:
            results["sets"][name] = _measure_set(name, arguments)
            write_json(arguments.out, results)
    print(_table(json.loads(arguments.out.read_text())))


def _measure_set(name: str, arguments: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    X, Y, kept = training_rows(name, arguments.data)
    X_test, Y_test = _test_rows(name, arguments.data, kept)
    clean = _micro_f1(X, Y, X_test, Y_test)
    found: dict[str, list[dict[str, float]]] = {noise: [] for noise in NOISES}
    cases = [
        (noise, *flipped(Y, rates, draw))
        for draw in range(arguments.draws)
        for noise, rates in NOISES.items()
    ]
    scores = left_out(X, np.hstack([recorded for _, recorded, _ in cases]), len(cases))
    for (noise, recorded, _), table in zip(cases, scores, strict=True):
        calibration = calibrate_labels(LabelMatrix.from_any(recorded), table, "sigmoid")
        errors = find_label_errors(None, recorded, scores=calibration.probabilities(table))
        kinds = (recorded, errors.corrected(), errors.corrected(0.5, "flip"))
        values = [_micro_f1(X, targets, X_test, Y_test) for targets in kinds]
        found[noise].append(dict(zip(_KINDS, [clean, *values], strict=True)))
        print(name, noise, {key: round(value, 4) for key, value in found[noise][-1].items()}, flush=True)
    return found


def _test_rows(name: str, data: Path, kept: Array) -> tuple[sp.csr_array, Array]:
    if name == "bibtex":
        whole = read_mulan(data / "mulan" / name / f"{name}-test.arff", data / "mulan" / name / f"{name}.xml")
        return sp.csr_array(normalize(whole.X)), whole.Y.positives.toarray()[:, kept]
    _, _, X_test, Y_test = load_debtags(return_X_y=True)
    return X_test, Y_test.toarray()[:, kept]


def _micro_f1(X: sp.csr_array, targets: Any, X_test: sp.csr_array, Y_test: Array) -> float:
    model = MaxMarginClassifier(C=1.0, tol=1e-2, threshold="f1", validation_fraction=0.2)
    predicted = model.fit(X, targets).predict(X_test)
    predicted = predicted.toarray() if sp.issparse(predicted) else predicted
    return float(metrics.f1_score(Y_test, predicted, average="micro"))


def _table(results: dict[str, Any]) -> str:
    lines = [f"{'':26}" + "".join(f"{kind:>14}" for kind in (*_KINDS, "recovered"))]
    for name, noises in results["sets"].items():
        for noise, runs in noises.items():
            means = [float(np.mean([run[kind] for run in runs])) for kind in _KINDS]
            shares = [(run["hidden"] - run["flipped"]) / (run["clean"] - run["flipped"]) for run in runs]
            cells = [*(f"{mean:.4f}" for mean in means), f"{np.mean(shares):.0%}"]
            lines.append(f"{name + ', ' + noise:26}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join([*lines, "micro-F1 of test rows, means over draws; recovered by hiding"])


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=("bibtex", "debtags"), default=["bibtex", "debtags"])
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--out", type=Path, default=_RESULTS)
    parser.add_argument("--show-recorded", action="store_true", help="print what the results file has")
    return parser.parse_args()


if __name__ == "__main__":
    main()
