"""Flags that turn scores into decisions: tuned thresholds, calibrated probabilities, sets with a guarantee.

A flag has the main parameter of its class, and after commas any other one by its name in Python, such as
``--conformal false_negatives,level=0.2``.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from labelweave.app.cli.flags import plain_value, with_options
from labelweave.app.cli.messages import flag_of
from labelweave.foundation.arguments import ParameterMessage

if TYPE_CHECKING:
    from labelweave import Taxonomy

DECISIONS = {  # the innermost first
    "enforce": "HierarchicalClassifier",
    "calibrate": "CalibratedLabelClassifier",
    "tune_threshold": "TunedThresholdClassifier",
    "conformal": "ConformalLabelClassifier",
}
_NOT_FLAGS = ("estimator", "random_state")
_MAIN = {"HierarchicalClassifier": "enforce"}  # of others it is the first
_HELD_OUT = ("cv", "validation_fraction")
_WORDS = {"true": True, "false": False, "none": None}

Settings = dict[str, Any]


def decision_class(name: str, package: str = "labelweave.decisions") -> Any:
    """Import the class of a flag."""
    return getattr(import_module(package), DECISIONS[name])


def _settings(context: click.Context, parameter: click.Parameter, text: str | None) -> Settings | None:
    """Read the settings of a flag, and refuse what its class would refuse."""
    if text is None:
        return None
    kind = decision_class(str(parameter.name))
    allowed = [name for name in inspect.signature(kind).parameters if name not in _NOT_FLAGS]
    main, found = _MAIN.get(kind.__name__, allowed[0]), Settings()
    for place, word in enumerate(text.split(",")):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals:
            name, value = (main if place == 0 else "", name)
        if name not in allowed or name in found or not value:
            raise click.BadParameter(
                f"{word!r} is not understood; give {main}, and after commas parameter=value, each once, of "
                f"{', '.join(allowed)}."
            )
        found[name] = value if name in (main, "taxonomy") else _setting(value)
    _check(kind, found)
    return found


def _setting(text: str) -> Any:
    """Read a number, a truth value or a word."""
    return _WORDS[text.lower()] if text.lower() in _WORDS else plain_value(text)


def _check(kind: Any, settings: Settings) -> None:
    from labelweave import MaxMarginClassifier

    any_classifier: Any = MaxMarginClassifier  # will do to check the others
    try:
        required = {"taxonomy": None} if kind.__name__ == DECISIONS["enforce"] else {}
        kind(any_classifier(), **required | settings)._validate_params()
    except ValueError as error:
        raise click.BadParameter(ParameterMessage(error.args[0])) from None


def refused_decisions(
    given: Mapping[str, Mapping[str, Any]], *, has_threshold: bool = False, prefit: bool = False
) -> Iterator[str]:
    """Say which flags make no sense together.

    given: the settings of the flags that are given, the innermost first.
    prefit: whether the model is fitted already, so that all rows are held-out ones.
    """
    choosing = [name for name in given if name != "enforce"]
    last, are_two = flag_of(choosing[-1]) if choosing else "", len(choosing) == 2
    decision = given.get("calibrate", {}).get("decision", "half")
    wrong = (
        (choosing and has_threshold, f"--threshold and {last} both set thresholds; give one of them."),
        ({"tune_threshold", "conformal"} <= set(given), "--tune-threshold and --conformal both choose label "
         "sets; give one of them."),
        (are_two and decision != "half", f"--calibrate {decision} and {last} both choose label sets; give "
         "decision=half."),
        (prefit and are_two and "conformal" in given, "--calibrate and --conformal need rows of their own, "
         "or the guarantee does not hold; calibrate first, and give the file that is made, with other rows, "
         "to labelweave decide --conformal."),
    )  # fmt: skip
    yield from (said for is_wrong, said in wrong if is_wrong)
    for name, settings in given.items():
        held_out = next((parameter for parameter in _HELD_OUT if parameter in settings), None)
        if prefit and held_out is not None:
            yield (
                f"{flag_of(name)} {held_out}={settings[held_out]}: the model is fitted already, so that all "
                "rows of DATA are held-out ones; leave it out."
            )
        if settings.get("cv") == "prefit":
            yield f"{flag_of(name)} cv=prefit: fit has no fitted model; use labelweave decide with its file."


def decided(
    kind: Any, model: Any, settings: Mapping[str, Any], taxonomy: Taxonomy | None, **options: Any
) -> Any:
    """Put a classifier into one of the class of a flag.

    taxonomy: that of the data, for a flag that needs one and names no file.
    options: further parameters, for classes that have them.
    """
    names = inspect.signature(kind).parameters
    known = {option: value for option, value in options.items() if option in names}
    if kind.__name__ != DECISIONS["enforce"]:
        return kind(model, **settings, **known)
    rest = {setting: value for setting, value in settings.items() if setting != "taxonomy"}
    if "taxonomy" in settings:
        from labelweave.datasets import read_taxonomy

        taxonomy = read_taxonomy(settings["taxonomy"])
    if taxonomy is None:
        raise click.UsageError(
            "--enforce: the data hold no taxonomy; give one with --enforce max,taxonomy=FILE."
        )
    return kind(model, taxonomy, **rest, **known)


def with_decisions(
    model: Any, given: Mapping[str, Mapping[str, Any]], taxonomy: Taxonomy | None,
    package: str = "labelweave.decisions", **options: Any,
) -> Any:  # fmt: skip
    """Put a classifier into those of flags, see :func:`decided`.

    package: where their classes are.
    """
    for name, settings in given.items():
        model = decided(decision_class(name, package), model, settings, taxonomy, **options)
    return model


decision_options = with_options(
    click.option("--enforce", metavar="HOW[,PARAMETER=VALUE...]", callback=_settings,
                 help="Complete labels by the hierarchy of DATA, --taxonomy or taxonomy=FILE, and let "
                 "predictions obey it: a label has the greatest score at or below it (max), or scores are "
                 "the nearest that obey (projection), or neither (none): HierarchicalClassifier, whose "
                 "other parameters are incomplete, conditional, decision (threshold, h_loss or stepwise) and "
                 "confidence."),
    click.option("--tune-threshold", metavar="OBJECTIVE[,PARAMETER=VALUE...]", callback=_settings,
                 help="Choose thresholds on held-out rows that are best for micro_f1, macro_f1, example_f1 "
                 "or hamming_loss, or reach a precision or recall (precision,target=0.9): "
                 "TunedThresholdClassifier, whose parameters are scope (label, global or top_k), target, "
                 "pooling, response_method, cv and validation_fraction."),
    click.option("--calibrate", metavar="METHOD[,PARAMETER=VALUE...]", callback=_settings,
                 help="Calibrate probabilities on held-out rows by sigmoid or isotonic maps, or by what fits "
                 "better (auto): CalibratedLabelClassifier, whose parameters are pooling, min_positives, "
                 "decision (half or expected_f1), response_method, cv and validation_fraction."),
    click.option("--conformal", metavar="CONTROL[,PARAMETER=VALUE...]", callback=_settings,
                 help="Predict label sets with a bound on their false_negatives or false_discoveries, or, "
                 "with one class a row, sets that seldom miss it: ConformalLabelClassifier, whose parameters "
                 "are level [0.1], guarantee (probability or expectation), confidence [0.95], "
                 "response_method, cv and validation_fraction."),
)  # fmt: skip
