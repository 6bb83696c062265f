"""What there is to be gained in finding wrong labels: structures that are known, and oracles.

As in ``benchmarks.label_errors``, with fewer draws and some or all of its rows.  Lines:

alone, learned          ``find_label_errors`` without related labels, and with those that it learns
text, taxonomy          the same with the covariance of the labels' names, and with the tags' facets (debtags)
true rates              learned, with the flip rates given
clean scores            the same on scores of regressions on the labels as they were before the flips
oracle                  Bayes' rule with the true rates, and probabilities by curves fitted to true labels,
                        of the scores and of the *true* other labels of the row
oracle, clean scores    the same on scores of regressions on the true labels

    python -m benchmarks.label_error_bounds --rows 500 3000
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from benchmarks.frame import RESULTS, read_options, several, write_json
from benchmarks.label_errors import NOISES, Array, flipped, left_out, training_rows
from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA, read_part
from labelweave import LabelCovariance, LabelMatrix, LabelText, Taxonomy
from labelweave.app.noise.left_out_scores import as_log_odds
from labelweave.app.noise.noisy_curves import fit_noisy_curves
from labelweave.app.noise.related_labels import relate_labels
from labelweave.datasets import load_debtags
from labelweave.inference import calibrate_labels
from labelweave.noise import find_label_errors

_FOLDS = 5


def _structures(name: str, kept: Array, data: Path) -> dict[str, LabelCovariance]:
    if name == "debtags":
        tags = load_debtags()
        names = [str(tags.label_names[label]) for label in kept]
        pairs = [tuple(pair) for pair in tags.parents]
        tree = LabelCovariance.from_taxonomy(Taxonomy(pairs), names, normalized=True)
        return {"text": LabelText(names).covariance(1.0, 0.5), "taxonomy": tree}
    whole = read_part(name, "train", data)
    names = [str(label).removeprefix("TAG_") for label in np.asarray(whole.label_names)[kept]]
    return {"text": LabelText(names).covariance(1.0, 0.5)}


def _probabilities(targets: Array, scores: Array) -> Array:
    calibration = calibrate_labels(LabelMatrix.from_any(targets), scores, "sigmoid")
    return np.asarray(calibration.probabilities(scores))


def _oracle(true: Array, recorded: Array, probabilities: Array, rates: tuple[float, float]) -> Array:
    """Say how likely entries are wrong, by all that can be known but the true labels of the entries."""
    scores, none = as_log_odds(probabilities), np.zeros(true.shape[1])
    alone = fit_noisy_curves(true, scores, (none, none))
    folds = np.random.default_rng(0).permutation(len(true)) % _FOLDS
    relations = relate_labels(true - alone.expected(), [true], folds)
    evidence = None if relations is None else relations.evidence
    truth = fit_noisy_curves(true, scores, (none, none), evidence, alone).truth
    missed, false = rates
    there = np.where(recorded == 1, 1.0 - missed, missed) * truth
    absent = np.where(recorded == 1, false, 1.0 - false) * (1.0 - truth)
    return np.asarray(np.where(recorded == 1, absent, there) / np.maximum(there + absent, 1e-300))


def _measure(X: Any, Y: Array, rates: tuple[float, float], draw: int, structures: Any) -> dict[str, float]:
    recorded, flips = flipped(Y, rates, draw)
    noisy, clean = (
        _probabilities(targets, scores)
        for targets, scores in zip((recorded, Y), left_out(X, np.hstack([recorded, Y]), 2), strict=True)
    )
    ways: dict[str, Any] = {"alone": {"related": False}, "learned": {}, "true rates": {"flip_rates": rates}}
    ways |= {kind: {"related": covariance} for kind, covariance in structures.items()}
    ways["clean scores"] = {"scores": clean, "flip_rates": rates}
    found = {}
    for name, more in ways.items():
        errors = find_label_errors(None, recorded, **{"scores": noisy} | more)
        found[name] = np.abs(errors.probabilities - recorded)
    found["oracle"] = _oracle(Y, recorded, noisy, rates)
    found["oracle, clean scores"] = _oracle(Y, recorded, clean, rates)
    return {
        name: float(average_precision_score(flips.ravel(), table.ravel())) for name, table in found.items()
    }


@needs_data
def main() -> None:
    chosen = read_options(
        __doc__,
        sets=several(("bibtex", "debtags")),
        noises=several(NOISES),
        rows=[500, 3000],
        draws=2,
        data=DEFAULT_DATA,
        out=RESULTS / "label_error_bounds.json",
    )
    results: dict[str, Any] = describe_machine() | {"draws": chosen.draws}
    for name in chosen.sets:
        X, Y, kept = training_rows(name, chosen.data)
        for size in chosen.rows:
            rows = np.sort(np.random.default_rng(1).permutation(len(Y))[:size])
            met = Y[rows].sum(axis=0) >= 2
            structures = _structures(name, kept[met], chosen.data)
            for noise in chosen.noises:
                runs = [
                    _measure(X[rows], Y[rows][:, met], NOISES[noise], draw, structures)
                    for draw in range(chosen.draws)
                ]
                results[f"{name}, {size} rows, {noise}"] = runs
                means = {way: round(float(np.mean([run[way] for run in runs])), 4) for way in runs[0]}
                print(name, size, noise, means, flush=True)
                write_json(chosen.out, results)


if __name__ == "__main__":
    main()
