"""Flags that turn scores into decisions: tuned thresholds, calibrated probabilities, sets with a guarantee.

A flag has the main parameter of its class, and after commas any other one by its name in Python, such as
``--conformal false_negatives,level=0.2``.
"""

from __future__ import annotations

import inspect
from typing import Any

import click

import labelweave
from labelweave.cli.data_options import Command, Options, with_options
from labelweave.cli.messages import flag_of
from labelweave.decisions import (
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    TunedThresholdClassifier,
)
from labelweave.inference.thresholds.objective import read_objective
from labelweave.labels import LabelMatrix
from labelweave.sklearn_compat import InvalidParameterError

__all__ = ["check_decision_options", "decides", "decision_options", "shown_name", "wrap_fitted", "wrapped"]

_CLASSES: dict[str, Any] = {  # the innermost first
    "calibrate": CalibratedLabelClassifier,
    "tune_threshold": TunedThresholdClassifier,
    "conformal": ConformalLabelClassifier,
}
_SHOWN = {"calibrate": "calibrated", "tune_threshold": "tuned", "conformal": "conformal"}
_ANY_CLASSIFIER: Any = labelweave.MaxMarginClassifier  # for a check of the others
_NOT_FLAGS = ("estimator", "random_state")
_HELD_OUT = ("cv", "validation_fraction")
_WORDS = {"true": True, "false": False, "none": None}


def decision_options(command: Command) -> Command:
    """Add the flags.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--tune-threshold", metavar="OBJECTIVE[,PARAMETER=VALUE...]", callback=_settings,
                     help="Choose thresholds on held-out rows that are best for micro_f1, macro_f1, "
                     "example_f1 or hamming_loss, or reach a precision or recall (precision,target=0.9): "
                     "TunedThresholdClassifier, whose parameters are scope (label, global or top_k), target, "
                     "pooling, response_method, cv and validation_fraction."),
        click.option("--calibrate", metavar="METHOD[,PARAMETER=VALUE...]", callback=_settings,
                     help="Calibrate probabilities on held-out rows by sigmoid or isotonic maps, or by what "
                     "fits better (auto): CalibratedLabelClassifier, whose parameters are pooling, "
                     "min_positives, decision (half or expected_f1), response_method, cv and "
                     "validation_fraction."),
        click.option("--conformal", metavar="CONTROL[,PARAMETER=VALUE...]", callback=_settings,
                     help="Predict label sets with a bound on their false_negatives or false_discoveries: "
                     "ConformalLabelClassifier, whose parameters are level [0.1], guarantee (probability or "
                     "expectation), confidence [0.95], response_method and validation_fraction."),
    )(command)  # fmt: skip


def _settings(context: click.Context, parameter: click.Parameter, text: str | None) -> Options | None:
    """Read the settings of a flag, and refuse what its class would refuse."""
    if text is None:
        return None
    kind = _CLASSES[str(parameter.name)]
    allowed = [name for name in inspect.signature(kind).parameters if name not in _NOT_FLAGS]
    if kind is ConformalLabelClassifier:
        allowed.remove("cv")  # it holds out one part or nothing
    main, found = allowed[0], dict[str, Any]()
    for place, word in enumerate(text.split(",")):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals:
            name, value = (main if place == 0 else "", name)
        if name not in allowed or name in found or not value:
            raise click.BadParameter(
                f"{word!r} is not understood; give {main}, and after commas parameter=value, each once, of "
                f"{', '.join(allowed)}."
            )
        found[name] = value if name == main else _value(value)
    _check(kind, found)
    return found


def _value(text: str) -> Any:
    """Read a number, a truth value or a word."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _check(kind: Any, settings: Options) -> None:
    if not (settings.get("cv") in (None, "prefit") or _is_count_of_folds(settings["cv"])):
        raise click.BadParameter(f"cv={settings['cv']} is no number of folds from 2 on.")
    try:
        kind(_ANY_CLASSIFIER(), **settings)._validate_params()
        if kind is TunedThresholdClassifier:
            read_objective(settings.get("objective", "micro_f1"), settings.get("target"))
    except (InvalidParameterError, ValueError) as error:
        raise click.BadParameter(" ".join(str(error).split())) from None
    if (settings.get("control"), settings.get("guarantee")) == ("false_discoveries", "expectation"):
        raise click.BadParameter("guarantee=expectation is for false_negatives; give guarantee=probability.")


def _is_count_of_folds(value: Any) -> bool:
    return type(value) is int and value >= 2


def shown_name(options: Options) -> str:
    """Name a model with what decides on its scores.

    options: the values of all flags.
    Returns such as ``max-margin, calibrated, conformal``.
    """
    return ", ".join(
        [options["model"], *(word for name, word in _SHOWN.items() if options[name] is not None)]
    )


def decides(options: Options) -> bool:
    """Tell whether any of these flags is given.

    options: the values of all flags.
    """
    return any(options[name] is not None for name in _CLASSES)


def check_decision_options(options: Options, prefit: bool = False) -> None:
    """Refuse flags that make no sense together.

    options: the values of all flags.
    prefit: whether the model is fitted already, so that all rows are held-out ones.
    Raises click.UsageError if there are any.
    """
    given = [name for name in _CLASSES if options[name] is not None]
    if given and options.get("threshold") is not None:
        raise click.UsageError(f"--threshold and {flag_of(given[-1])} both set thresholds; give one of them.")
    if {"tune_threshold", "conformal"} <= set(given):
        raise click.UsageError("--tune-threshold and --conformal both choose label sets; give one of them.")
    if len(given) == 2 and options["calibrate"].get("decision", "half") != "half":
        raise click.UsageError(
            f"--calibrate {options['calibrate']['decision']} and {flag_of(given[1])} both choose label sets; "
            "give decision=half."
        )
    if prefit and len(given) == 2 and given[1] == "conformal":
        raise click.UsageError(
            "--calibrate and --conformal need rows of their own, or the guarantee does not hold; calibrate "
            "first, and give the file that is made, with other rows, to labelweave decide --conformal."
        )
    for name in given:
        _check_held_out(name, options[name], prefit)


def _check_held_out(name: str, settings: Options, prefit: bool) -> None:
    held_out = next((parameter for parameter in _HELD_OUT if parameter in settings), None)
    if prefit and held_out is not None:
        raise click.UsageError(
            f"{flag_of(name)} {held_out}={settings[held_out]}: the model is fitted already, so that all rows "
            "of DATA are held-out ones; leave it out."
        )
    if settings.get("cv") == "prefit":
        raise click.UsageError(
            f"{flag_of(name)} cv=prefit: fit has no fitted model; use labelweave decide with its file."
        )


def wrapped(estimator: Any, options: Options) -> Any:
    """Put a classifier into those that decide.

    estimator: the one that scores, not fitted.
    options: the values of all flags.
    Returns the same one, if no flag is given, or one that decides.
    """
    for name, kind in _CLASSES.items():
        if options[name] is not None:
            estimator = kind(estimator, **options[name], random_state=options["seed"])
    return estimator


def wrap_fitted(estimator: Any, X: Any, Y: LabelMatrix, options: Options) -> Any:
    """Put a fitted classifier into those that decide.

    X (n, d): rows that it was not fitted to.
    options: the values of all flags, one of which is given.
    Shapes: Y (n, L).
    """
    for name, kind in _CLASSES.items():
        if options[name] is not None:
            estimator = kind(estimator, **options[name], cv="prefit").fit(X, Y)
    return estimator
