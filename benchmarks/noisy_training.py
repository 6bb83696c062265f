"""Training on labels that are wrong: what correction recovers of the micro-F1 on clean test rows.

Training labels are flipped as in ``benchmarks.label_errors``, and ``find_label_errors`` with rates that it
estimates says which are wrong; where labels were only forgotten, it is told so.  ``MaxMarginClassifier(C=1)``
is fitted to the clean labels, to the flipped ones, and to four corrections: ``hidden`` and ``flipped back``,
entries more likely wrong than right; ``soft``, all entries by their probabilities; ``rates``, the flipped
labels with the estimated ``flip_rates``, which the losses and the threshold undo.

One threshold a model is the best for the micro-F1 on a fifth of the training rows, by the labels that the
model is fitted to; ``at 0`` has the threshold 0 in all models.  ``recovered`` is the share of the micro-F1
lost between clean and flipped labels, ``of the better`` where the flipped fit may have either threshold.
Nothing is chosen on test rows.

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
_KINDS = ("clean", "flipped", "hidden", "flipped back", "soft", "rates")


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
        known = None if NOISES[noise][1] else (None, 0.0)
        errors = find_label_errors(None, recorded, scores=calibration.probabilities(table), flip_rates=known)
        kinds = recorded, *(errors.corrected(0.5, how) for how in ("hide", "flip", "soft"))
        values = [clean, *(_micro_f1(X, targets, X_test, Y_test) for targets in kinds)]
        values.append(_micro_f1(X, recorded, X_test, Y_test, errors.flip_rates))
        run = dict(zip(_KINDS, [chosen for chosen, _ in values], strict=True))
        run |= {f"{kind} at 0": at_zero for kind, (_, at_zero) in zip(_KINDS, values, strict=True)}
        found[noise].append(run)
        print(name, noise, {key: round(value, 4) for key, value in run.items()}, flush=True)
    return found


def _test_rows(name: str, data: Path, kept: Array) -> tuple[sp.csr_array, Array]:
    if name == "bibtex":
        whole = read_mulan(data / "mulan" / name / f"{name}-test.arff", data / "mulan" / name / f"{name}.xml")
        return sp.csr_array(normalize(whole.X)), whole.Y.positives.toarray()[:, kept]
    _, _, X_test, Y_test = load_debtags(return_X_y=True)
    return X_test, Y_test.toarray()[:, kept]


def _micro_f1(
    X: sp.csr_array, targets: Any, X_test: sp.csr_array, Y_test: Array, rates: Any = None
) -> tuple[float, float]:
    """Give the micro-F1 of test rows with the chosen threshold, and with 0."""
    model = MaxMarginClassifier(
        C=1.0, tol=1e-2, threshold="f1", validation_fraction=0.2, flip_rates=rates
    ).fit(X, targets)
    scores = model.decision_function(X_test)  # less thresholds
    sets = scores > 0, scores + model.thresholds_ > 0
    chosen, at_zero = (metrics.f1_score(Y_test, found.astype(int), average="micro") for found in sets)
    return float(chosen), float(at_zero)


def _table(results: dict[str, Any]) -> str:
    lines = [f"{'':34}" + "".join(f"{kind:>14}" for kind in _KINDS)]
    for name, noises in results["sets"].items():
        for noise, runs in noises.items():
            means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            for ending in ("", " at 0"):
                cells = [f"{means[kind + ending]:.4f}" if kind + ending in means else "" for kind in _KINDS]
                lines.append(f"{name + ', ' + noise + ending:34}" + "".join(f"{cell:>14}" for cell in cells))
            bases = means["flipped"], max(means["flipped"], means.get("flipped at 0", 0.0))
            for words, base in zip(("  recovered", "  of the better"), bases, strict=True):
                found = [kind for kind in _KINDS[2:] if kind in means]
                shares = [(means[kind] - base) / (means["clean"] - base) for kind in found]
                lines.append(f"{words:34}{'':>28}" + "".join(f"{share:>14.0%}" for share in shares))
    return "\n".join([*lines, "micro-F1 of test rows, means over draws; no figure where it was not measured"])


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
