"""Flags of decisions: tuned thresholds, calibrated probabilities, sets with a guarantee.

A flag takes the main parameter of its class, and other parameters by their Python names after commas, such
as ``--conformal false_negatives,level=0.2``.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from labelweave.app.cli.flags import option, plain_value, with_options
from labelweave.app.cli.messages import excluded, flag_of
from labelweave.foundation.arguments import ParameterMessage

if TYPE_CHECKING:
    from labelweave import Taxonomy

DECISIONS = {  # the innermost first
    "enforce": "HierarchicalClassifier",
    "calibrate": "CalibratedLabelClassifier",
    "tune_threshold": "TunedThresholdClassifier",
    "conformal": "ConformalLabelClassifier",
}
DECIDING = ("calibrate", "tune_threshold", "conformal")  # flags that fit several times
_EXCLUSIONS = ((("tune_threshold",), ("conformal",), "{} and {} both choose label sets; use one of them."),)
_NOT_FLAGS = ("estimator", "random_state")
_MAIN = {"HierarchicalClassifier": "enforce"}  # the first parameter of other classes
_HELD_OUT = ("cv", "validation_fraction")
_WORDS = {"true": True, "false": False, "none": None}

Settings = dict[str, Any]


def decision_class(name: str) -> Any:
    return getattr(import_module("labelweave.decisions"), DECISIONS[name])


def _settings(context: click.Context, parameter: click.Parameter, text: str | None) -> Settings | None:
    """Read the settings of a flag, and raise where its class would."""
    if text is None:
        return None
    kind = decision_class(str(parameter.name))
    allowed = [name for name in inspect.signature(kind).parameters if name not in _NOT_FLAGS]
    main, found = _MAIN.get(kind.__name__, allowed[0]), Settings()
    for place, word in enumerate(text.split(",")):
        value: Any
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals:
            name, value = (main if place == 0 else "", name)
        if name not in allowed or name in found or not value:
            raise click.BadParameter(
                f"{word!r} is not understood; pass {main}, and after commas parameter=value, each once, of "
                f"{', '.join(allowed)}."
            )
        if name not in (main, "taxonomy"):
            value = _WORDS.get(value.lower(), plain_value(value))
        found[name] = value
    _check(kind, found)
    return found


def _check(kind: Any, settings: Settings) -> None:
    from labelweave import MaxMarginClassifier

    any_classifier: Any = MaxMarginClassifier  # suffices to check the others
    try:
        required = {"taxonomy": None} if kind.__name__ == DECISIONS["enforce"] else {}
        kind(any_classifier(), **required | settings)._validate_params()
    except ValueError as error:
        raise click.BadParameter(ParameterMessage(error.args[0])) from None


def refused_decisions(given: Mapping[str, Settings], *, prefit: bool = False) -> Iterator[str]:
    """Yield the reasons why flags are invalid together.

    given: the settings of the flags that are set, the innermost first.
    prefit: whether the model is already fitted, so that all rows are held-out rows.
    """
    yield from excluded(given, _EXCLUSIONS)
    choosing = [name for name in DECIDING if name in given]
    decision = given.get("calibrate", {}).get("decision", "half")
    if len(choosing) > 1 and decision != "half":
        other = flag_of(choosing[-1])
        yield f"--calibrate {decision} and {other} both choose label sets; use decision=half."
    if prefit and {"calibrate", "conformal"} <= set(given):
        yield (
            "--calibrate and --conformal need separate rows, or the guarantee does not hold; calibrate "
            "first, and pass the resulting file, with other rows, to labelweave decide --conformal."
        )
    for name, settings in given.items():
        held_out = next((parameter for parameter in _HELD_OUT if parameter in settings), None)
        if prefit and held_out is not None:
            yield (
                f"{flag_of(name)} {held_out}={settings[held_out]}: the model is already fitted, so all rows "
                "of DATA are held-out rows; leave it out."
            )
        if settings.get("cv") == "prefit":
            yield f"{flag_of(name)} cv=prefit: fit has no fitted model; use labelweave decide with its file."


def with_decisions(
    model: Any, given: Mapping[str, Settings], taxonomy: Taxonomy | None, **options: Any
) -> Any:
    """Wrap a classifier in the classifiers of decision flags.

    taxonomy: that of the data, for a flag that needs one and names no file.
    options: further parameters, for classes that have them.
    """
    for name, settings in given.items():
        kind, own = decision_class(name), dict(settings)
        if name == "enforce":
            from labelweave.datasets import read_taxonomy

            file = own.pop("taxonomy", None)
            own["taxonomy"] = read_taxonomy(file) if isinstance(file, str) else file or taxonomy
            if own["taxonomy"] is None:
                raise click.UsageError(
                    "--enforce: the data hold no taxonomy; add one with --enforce max,taxonomy=FILE."
                )
        names = inspect.signature(kind).parameters
        known = {option: value for option, value in options.items() if option in names}
        model = kind(model, **own, **known)
    return model


decision_options = with_options(
    option("--enforce HOW[,PARAMETER=VALUE...]", "Complete labels by the hierarchy of DATA, --taxonomy or "
           "taxonomy=FILE, and make predictions consistent: each label gets the highest score of itself and "
           "its descendants (max, the default for labels below others), or scores become the nearest "
           "consistent ones (projection), or neither (none): "
           "HierarchicalClassifier, whose other parameters are incomplete, conditional, decision "
           "(threshold, h_loss or stepwise) and confidence.", callback=_settings),
    option("--tune-threshold OBJECTIVE[,PARAMETER=VALUE...]", "Tune thresholds on held-out rows for "
           "micro_f1, macro_f1, example_f1 or hamming_loss, or to reach a precision or recall "
           "(precision,target=0.9): TunedThresholdClassifier, whose parameters are scope (label, global or "
           "top_k), target, shrinkage, response_method, cv and validation_fraction.", callback=_settings),
    option("--calibrate METHOD[,PARAMETER=VALUE...]", "Calibrate probabilities on held-out rows by sigmoid "
           "or isotonic maps, or the better of both (auto): CalibratedLabelClassifier, whose parameters are "
           "shrinkage, min_positives, decision (half or expected_f1), response_method, cv and "
           "validation_fraction.", callback=_settings),
    option("--conformal CONTROL[,PARAMETER=VALUE...]", "Predict label sets with a bound on their "
           "false_negatives or false_discoveries, or, with one class per row, sets that rarely miss it: "
           "ConformalLabelClassifier, whose parameters are level [0.1], guarantee (probability or "
           "expectation), confidence [0.95], response_method, cv and validation_fraction.",
           callback=_settings),
)  # fmt: skip
