"""The models that ``labelweave fit`` knows, and the flags that their constructors give.

A parameter is a flag of the same name: its constraints say what it takes; its default and, where
:mod:`labelweave.cli.model_flags` has no text for it, its numpydoc say what the help says.  All this is kept
as a file beside the compiled modules: importing the constructors takes seconds.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

MODELS = {
    "auto": "labelweave.automatic:AutoLabelClassifier",
    "max-margin": "labelweave.estimators:MaxMarginClassifier",
    "kernel-logistic": "labelweave.estimators:KernelLogisticClassifier",
    "low-rank": "labelweave.estimators:LowRankClassifier",
    "label-graph": "labelweave.estimators:LabelGraphClassifier",
    "label-tree": "labelweave.estimators:LabelTreeClassifier",
    "binary-relevance": "labelweave.estimators:BinaryRelevance",
}
_CHOOSING = {"low-rank": "labelweave.estimators:LowRankClassifierCV"}

_FLAGS = {"n_jobs": "jobs", "random_state": "seed", "fit_intercept": "no_intercept"}
_FORMS = {"ranks": "list", "regularizations": "list", "members": "list", "checkpoint": "text"}
_NO_FLAGS: dict[str, tuple[str, ...] | None] = {
    "warm_start": None,  # of any model: a process has no earlier fit
    "verbose": None,  # the command shows progress in any case
    "solver": ("kernel-logistic", "label-graph"),
    "loss": ("kernel-logistic",),  # an object if it is not the usual one
}
_NO_WORDS = {"kernel": ("precomputed",), "regularization": ("auto",)}
_COUNTS = ("max_rounds",)  # whose constraint leaves it to fit to refuse 0
_KEPT_AS = "model_flags.json"


class Range(NamedTuple):
    """Numbers that a parameter takes; ``closed`` as in scikit-learn's intervals."""

    is_whole: bool
    low: float = -math.inf
    high: float = math.inf
    closed: str = "neither"

    @property
    def has_low(self) -> bool:
        """Whether the lower bound is in it."""
        return self.closed in ("left", "both")

    @property
    def has_high(self) -> bool:
        """Whether the upper bound is in it."""
        return self.closed in ("right", "both")

    def holds(self, value: Any) -> bool:
        """Whether a number is in it, which NaN never is."""
        if isinstance(value, bool) or (self.is_whole and not isinstance(value, int)):
            return False
        is_bound = (value == self.low and self.has_low) or (value == self.high and self.has_high)
        return is_bound or self.low < value < self.high

    @property
    def words(self) -> str:
        """The bounds, as in ``above 0``."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"between {self.low:g} and {self.high:g}"
        if math.isinf(self.low):
            return "" if math.isinf(self.high) else f"up to {self.high:g}"
        return f"from {self.low:g} on" if self.has_low else f"above {self.low:g}"


class Parameter(NamedTuple):
    """What the constructor of one model says of a flag.

    kind: "value", "switch", "text", "list", or "object" for what no flag can write out.
    is_choice: whether only the class that chooses by cross-validation has it.
    """

    name: str
    kind: str
    default: Any
    words: tuple[str, ...]
    ranges: tuple[Range, ...]
    is_choice: bool
    says: str

    def takes(self, value: Any) -> bool:
        """Whether the constructor allows a value that was read from the command line."""
        if isinstance(value, str):
            return not self.words or value in self.words
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return not is_number or not self.ranges or any(part.holds(value) for part in self.ranges)


class ModelTable(NamedTuple):
    """Every flag with the models that have it."""

    flags: dict[str, dict[str, Parameter]]
    objects: dict[str, tuple[str, ...]]

    def of(self, model: str) -> dict[str, Parameter]:
        """Give the flags of one model."""
        return {flag: owners[model] for flag, owners in self.flags.items() if model in owners}

    def choices(self, model: str) -> list[str]:
        """Name the flags by which a model is chosen by cross-validation."""
        return [flag for flag, parameter in self.of(model).items() if parameter.is_choice]

    def keywords(self, model: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Give flags in the words of the constructor."""
        own = {flag: parameter for flag, parameter in self.of(model).items() if flag in given}
        return {p.name: p.default is not True and given[flag] for flag, p in own.items()}


def class_of(model: str, *, choosing: bool = False) -> Any:
    """Import the class of a model, or the one that chooses by cross-validation."""
    module, name = (_CHOOSING if choosing else MODELS)[model].split(":")
    return getattr(import_module(module), name)


@cache
def model_table() -> ModelTable:
    """Give what the constructors say, from the last time if they are the same files."""
    place, state = Path(__file__).parent / "__pycache__" / _KEPT_AS, _state_of_sources()
    try:
        kept = json.loads(place.read_text(encoding="utf-8"))
        if kept["state"] == state:
            return _from_plain(kept)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    table = _from_plain(json.loads(json.dumps(_read_constructors())))
    if not sys.dont_write_bytecode:
        # where the package cannot be written, constructors are read every time
        with suppress(OSError):
            fresh = place.with_suffix(".new")
            fresh.write_text(json.dumps({"state": state, **table._asdict()}), encoding="utf-8")
            fresh.replace(place)
    return table


def _state_of_sources() -> list[list[Any]]:
    """Say which constructors there are by path, size and time of their files."""
    package = Path(__file__).parents[1]
    folders = ("automatic", "estimators")
    files = [*(file for name in folders for file in package.glob(f"{name}/**/*.py")), Path(__file__)]
    found = [(path, path.stat()) for path in sorted(files)]
    return [[str(path.relative_to(package)), at.st_size, at.st_mtime_ns] for path, at in found]


def _from_plain(kept: dict[str, Any]) -> ModelTable:
    flags = {
        flag: {
            model: Parameter._make([*p[:3], tuple(p[3]), tuple(Range(*part) for part in p[4]), *p[5:]])
            for model, p in owners.items()
        }
        for flag, owners in kept["flags"].items()
    }
    return ModelTable(flags, {name: tuple(models) for name, models in kept["objects"].items()})


def _read_constructors() -> dict[str, Any]:
    flags: dict[str, dict[str, Parameter]] = {}
    objects: dict[str, list[str]] = {}
    for model in MODELS:
        for parameter in _parameters_of(model):
            usual = f"no_{parameter.name}" if parameter.default is True else parameter.name
            flag = _FLAGS.get(parameter.name, usual)
            without = _NO_FLAGS.get(parameter.name, ())
            if parameter.kind == "object":
                objects.setdefault(parameter.name, []).append(model)
            elif without is not None and model not in without:
                flags.setdefault(flag, {})[model] = parameter
    return {"flags": flags, "objects": objects}


def _parameters_of(model: str) -> Iterator[Parameter]:
    plain = class_of(model)
    own = inspect.signature(plain).parameters
    yield from (_parameter(plain, parameter, False) for parameter in own.values())
    if model in _CHOOSING:
        choosing = class_of(model, choosing=True)
        more = inspect.signature(choosing).parameters
        yield from (_parameter(choosing, found, True) for name, found in more.items() if name not in own)


def _parameter(kind: Any, parameter: inspect.Parameter, is_choice: bool) -> Parameter:
    """Read the constraints of one parameter."""
    name, default = parameter.name, parameter.default
    allowed = kind._parameter_constraints.get(name, ())
    allowed = () if isinstance(allowed, str) else allowed
    told = re.search(
        rf"^{name} : (?P<type>(?:.*\\\n)*.*)\n(?P<says>(?:    .*\n?|\n)+)", inspect.getdoc(kind) or "", re.M
    )
    said = told["type"] if told else ""
    words = [str(word) for part in allowed for word in getattr(part, "options", ())]
    words = [w for w in words if w not in _NO_WORDS.get(name, ()) and (f'"{w}"' in said or not said)]
    ranges = [found for part in allowed for found in _ranges(part)]
    ranges = [Range(True, 1, closed="left")] if name in _COUNTS else ranges
    form = "switch" if "boolean" in allowed else _FORMS.get(name, "value" if words or ranges else "object")
    says = " ".join(told["says"].split()).partition(". ")[0] if told else ""
    plain = default if isinstance(default, (bool, int, float, str, type(None))) else list(default)
    order = sorted(words, key=lambda word: (said.find(f'"{word}"'), word))
    return Parameter(name, form, plain, tuple(order), tuple(ranges), is_choice, says.rstrip("."))


def _ranges(part: Any) -> Iterator[Range]:
    """Give the numbers that a constraint allows."""
    if hasattr(part, "left"):
        low = -math.inf if part.left is None else part.left
        high = math.inf if part.right is None else part.right
        yield Range(part.type.__name__ == "Integral", low, high, part.closed)
    elif getattr(part, "__name__", "") == "Integral":
        yield Range(True)
    elif part == "random_state":
        yield Range(True, 0, 2**32 - 1, "both")
    elif part == "cv_object":
        yield Range(True, 2, closed="left")
