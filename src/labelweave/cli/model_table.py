"""The models that ``labelweave fit`` knows, and the flags that their constructors give.

A parameter is a flag of the same name: its constraints say what it takes; its default and, where
:mod:`labelweave.cli.model_flags` has no text for it, its numpydoc say what the help says.  All this is kept
as a file beside the compiled modules: importing the constructors takes seconds that no help and no misspelt
flag should cost.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["MODELS", "ModelTable", "Parameter", "Range", "class_of", "model_table"]

MODELS = {
    "max-margin": "labelweave.estimators:MaxMarginClassifier",
    "kernel-logistic": "labelweave.estimators:KernelLogisticClassifier",
    "low-rank": "labelweave.estimators:LowRankClassifier",
    "label-graph": "labelweave.estimators:LabelGraphClassifier",
    "binary-relevance": "labelweave.baselines:BinaryRelevance",
    "plst": "labelweave.baselines:PLST",
    "cplst": "labelweave.baselines:CPLST",
    "wsabie": "labelweave.baselines:WSABIE",
}
_CHOOSING = {"low-rank": "labelweave.estimators:LowRankClassifierCV"}

_FLAGS = {"n_jobs": "jobs", "random_state": "seed", "n_epochs": "max_iter",
          "fit_intercept": "no_intercept", "center": "no_intercept"}  # fmt: skip
_LISTS = ("ranks", "regularizations")
_FILES = ("checkpoint",)
_NO_FLAGS: dict[str, tuple[str, ...] | None] = {
    "warm_start": None,  # of any model: a process has no earlier fit
    "solver": ("kernel-logistic", "label-graph"),
}
_NO_WORDS = {"kernel": ("precomputed",), "regularization": ("auto",)}
_COUNTS = ("max_rounds",)  # whose constraint leaves it to fit to refuse 0
_KEPT_AS = "model_flags.json"


class Range(NamedTuple):
    """Numbers that a parameter takes; ``closed`` as in scikit-learn's intervals."""

    is_whole: bool
    low: float | None = None
    high: float | None = None
    closed: str = "neither"

    def holds(self, value: Any) -> bool:
        """Whether a number is in it; NaN is left to the constructor to refuse."""
        if isinstance(value, bool) or (self.is_whole and not isinstance(value, int)):
            return False
        if math.isnan(value):
            return True
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        is_above = value >= low if self.closed in ("left", "both") else value > low
        return bool(is_above and (value <= high if self.closed in ("right", "both") else value < high))

    @property
    def words(self) -> str:
        """The bounds, as in ``above 0``."""
        if self.low is not None and self.high is not None:
            return f"between {self.low:g} and {self.high:g}"
        if self.low is None:
            return "" if self.high is None else f"up to {self.high:g}"
        return f"from {self.low:g} on" if self.closed in ("left", "both") else f"above {self.low:g}"


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
        _keep(place, {"state": state, **table._asdict()})
    return table


def _state_of_sources() -> list[list[Any]]:
    """Say which constructors there are by path, size and time of their files."""
    package = Path(__file__).parents[1]
    files = [
        Path(__file__),
        *(path for name in ("estimators", "baselines") for path in package.glob(f"{name}/**/*.py")),
    ]
    found = [(path, path.stat()) for path in sorted(files)]
    return [[str(path.relative_to(package)), at.st_size, at.st_mtime_ns] for path, at in found]


def _keep(place: Path, content: dict[str, Any]) -> None:
    fresh = place.with_suffix(".new")
    try:
        fresh.write_text(json.dumps(content), encoding="utf-8")
        fresh.replace(place)
    except OSError:  # where the package cannot be written, constructors are read every time
        pass


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
    ranges = [Range(True, 1, None, "left")] if name in _COUNTS else ranges
    form = "value" if words or ranges else "object"
    form = (
        "switch" if "boolean" in allowed else "text" if name in _FILES else "list" if name in _LISTS else form
    )
    says = " ".join(told["says"].split()).partition(". ")[0] if told else ""
    plain = default if isinstance(default, (bool, int, float, str, type(None))) else list(default)
    order = sorted(words, key=lambda word: (said.find(f'"{word}"'), word))
    return Parameter(name, form, plain, tuple(order), tuple(ranges), is_choice, says.rstrip("."))


def _ranges(part: Any) -> Iterator[Range]:
    """Give the numbers that a constraint allows."""
    if hasattr(part, "closed"):
        yield Range(part.type.__name__ == "Integral", part.left, part.right, part.closed)
    elif getattr(part, "__name__", "") == "Integral":
        yield Range(True)
    elif isinstance(part, str):
        known = {"random_state": Range(True, 0, 2**32 - 1, "both"), "cv_object": Range(True, 2, None, "left")}
        yield from (known[part],) if part in known else ()
