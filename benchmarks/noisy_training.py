"""Training on wrong labels: how much micro-F1 on clean test rows correction recovers.

Training labels are flipped as in ``benchmarks.label_errors``, and ``find_label_errors`` finds the wrong ones
with rates that it estimates; if labels were only forgotten, this is passed. ``MaxMarginClassifier(C=1)`` is
fitted to the clean labels, to the flipped ones, and to five corrections: ``hidden`` and ``flipped back``,
entries more likely wrong than right; ``soft``, all entries by their probabilities; ``rates`` and ``true
rates``, the flipped labels with the estimated and with the true ``flip_rates``, which correct the losses and
the threshold. One threshold per model maximizes the micro-F1 on a fifth of the training rows, by the labels
that the model is fitted to; ``at 0`` has the threshold 0 in all models. ``recovered`` is the share of the
micro-F1 lost between clean and flipped labels, ``of the better`` where the flipped fit may have either
threshold. Nothing is chosen on test rows.
"""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import RESULTS, RecordedRuns, command, groups, mean_and_error, several
from benchmarks.label_errors import NOISES, SETS, Array, flipped, out_of_fold, training_rows
from benchmarks.problems import read_tables
from labelweave import LabelMatrix, MaxMarginClassifier, TunedThresholdClassifier, metrics
from labelweave.noise import find_label_errors
from labelweave.postprocessing import calibrate_labels

_KINDS = ("clean", "flipped", "hidden", "flipped back", "soft", "rates", "true rates")
_DRAWS = 5


def _measure_set(name: str, arguments: Any, recorded: RecordedRuns) -> None:
    cases = list(recorded.missing(set=[name], noise=NOISES, draw=range(arguments.draws)))
    if not cases:
        return
    X, Y, kept = training_rows(name)
    X_test, Y_test = test_rows(name, kept)
    clean = _micro_f1(X, Y, X_test, Y_test)
    drawn = [flipped(Y, NOISES[case["noise"]], case["draw"])[0] for case in cases]
    for case, given, scores in zip(cases, drawn, out_of_fold(X, np.hstack(drawn), len(cases)), strict=True):
        rates = NOISES[case["noise"]]
        calibration = calibrate_labels(LabelMatrix.from_any(given), scores, "sigmoid")
        known = None if rates[1] else (None, 0.0)
        errors = find_label_errors(None, given, scores=calibration.probabilities(scores), flip_rates=known)
        kinds = given, *(errors.corrected(0.5, how) for how in ("hide", "flip", "soft"))
        values = [clean, *(_micro_f1(X, targets, X_test, Y_test) for targets in kinds)]
        values += [_micro_f1(X, given, X_test, Y_test, told) for told in (errors.flip_rates, rates)]
        found = dict(zip(_KINDS, [chosen for chosen, _ in values], strict=True))
        found |= {f"{kind} at 0": at_zero for kind, (_, at_zero) in zip(_KINDS, values, strict=True)}
        recorded.add(case, found)
        print(*case.values(), {key: round(value, 4) for key, value in found.items()}, flush=True)


def test_rows(name: str, kept: Array) -> tuple[sp.csr_array, Array]:
    _, _, X_test, Y_test = read_tables(name, rows="unit" if name == "bibtex" else "as given")
    return X_test, Y_test.toarray()[:, kept]


def _micro_f1(
    X: sp.csr_array, targets: Any, X_test: sp.csr_array, Y_test: Array, rates: Any = None
) -> tuple[float, float]:
    """Return the micro-F1 of test rows with the chosen threshold, and with 0."""
    inner = MaxMarginClassifier(C=1.0, tol=1e-2, flip_rates=rates)
    model = TunedThresholdClassifier(inner, scope="global", validation_fraction=0.2).fit(X, targets)
    scores = model.decision_function(X_test)  # minus thresholds
    sets = scores > 0, scores + model.thresholds_ > 0
    chosen, at_zero = (metrics.f1_score(Y_test, found.astype(int), average="micro") for found in sets)
    return float(chosen), float(at_zero)


def _table(runs: list[dict[str, Any]]) -> str:
    lines = [f"{'':34}" + "".join(f"{kind:>14}" for kind in _KINDS)]
    for (name, noise), own in groups(runs, "set", "noise").items():
        values = {kind: np.array([run[kind] for run in own]) for kind in own[0] if kind.startswith(_KINDS)}
        for ending in ("", " at 0"):
            cells = [mean_and_error(values[kind + ending], 3) for kind in _KINDS]
            lines.append(f"{name + ', ' + noise + ending:34}" + "".join(f"{cell:>14}" for cell in cells))
        means = {kind: value.mean() for kind, value in values.items()}
        bases = means["flipped"], max(means["flipped"], means["flipped at 0"])
        for words, base in zip(("  recovered", "  of the better"), bases, strict=True):
            shares = [(means[kind] - base) / (means["clean"] - base) for kind in _KINDS[2:]]
            lines.append(f"{words:34}{'':>28}" + "".join(f"{share:>14.0%}" for share in shares))
    return "\n".join([*lines, "micro-F1 of test rows, mean ± standard error over draws of the flips"])


@command(sets=several(SETS), draws=_DRAWS, records=RESULTS / "noisy_training.json")
def main(arguments: Any) -> None:
    recorded = RecordedRuns(arguments)
    warnings.simplefilter("ignore", UserWarning)  # of models that fit wrong labels
    for name in arguments.sets:
        _measure_set(name, arguments, recorded)
    recorded.show(_table(recorded.runs))
