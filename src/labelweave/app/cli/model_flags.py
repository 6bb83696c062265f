"""The models of ``labelweave fit``, and the flags that are parameters of their constructors.

``scripts/write_model_flags.py`` stores the parameters in ``model_flags.json``, since importing constructors
takes seconds.  Constructors validate the values.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from labelweave.app.cli.flags import plain_value, reading
from labelweave.app.cli.messages import alternatives, flag_of

MODELS = {
    "auto": "labelweave.decisions.automatic:AutoLabelClassifier",
    "max-margin": "labelweave.estimators:MaxMarginClassifier",
    "kernel-logistic": "labelweave.estimators:KernelLogisticClassifier",
    "low-rank": "labelweave.estimators:LowRankClassifier",
    "label-graph": "labelweave.estimators:LabelGraphClassifier",
    "label-tree": "labelweave.estimators:LabelTreeClassifier",
    "binary-relevance": "labelweave.estimators:BinaryRelevance",
}
PARTS = {  # parameters that take an object, and its class, whose parameters are also flags
    "kernel": "labelweave.kernels:PolynomialKernel",
    "hyperparameters": "labelweave.estimators:HyperparameterSearch",
    "rank": "labelweave.estimators:RankSearch",
    "graph": "labelweave.estimators:GraphGrowth",
}
LISTED = {"rank": "ranks", "alpha": "alphas"}  # a single value, and a list to choose from
_SEE_OTHER = re.compile(r"\b(?:as in|as of|see) [A-Z]")
_MOST_PREFIXED = 3  # largest number of models named in the help of a flag
_SIGNS = 2
_TYPES = {"int": click.INT, "float": click.FLOAT}


class Parameter(NamedTuple):
    """A flag's parameter in the constructor of one model.

    kind: "value", "switch", "text" or "list".
    words, numbers: valid values; numbers are "int", "float" or both.
    parts: the model's parameters whose objects have it; none where the model itself does.
    """

    name: str
    kind: str
    default: Any
    words: list[str]
    numbers: list[str]
    parts: list[str]
    says: str

    @property
    def is_choice(self) -> bool:
        """Whether it makes the fit choose rank and penalty by cross-validation."""
        return self.parts == ["rank"]


_NONE = Parameter("", "value", None, [], [], [], "")


class ModelTable(NamedTuple):
    """Every flag with the models that have it; other parameters, which take Python objects, with theirs."""

    flags: dict[str, dict[str, Parameter]]
    objects: dict[str, list[str]]

    def of(self, model: str) -> dict[str, Parameter]:
        return {flag: owners[model] for flag, owners in self.flags.items() if model in owners}

    def choices(self, model: str) -> list[str]:
        """Return the flags that choose a model by cross-validation."""
        return [flag for flag, parameter in self.of(model).items() if parameter.is_choice]

    def keywords(self, model: str, given: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        """Convert flags to keywords of the constructor.

        found: further keywords.
        """
        own = {flag: parameter for flag, parameter in self.of(model).items() if flag in given}
        words: dict[str, Any] = {}
        parts: dict[str, dict[str, Any]] = {}
        for flag, parameter in own.items():
            value = parameter.default is not True and _weights_of_signs(flag, given[flag])
            for words_of in map(parts.setdefault, parameter.parts, ({} for _ in parameter.parts)):
                words_of[parameter.name] = value
            if not parameter.parts:
                words[parameter.name] = value
        if not any(parameter.is_choice for parameter in own.values()):
            parts.pop("rank", None)
        elif "rank" in parts:
            some = [name for name in LISTED if name in words]
            parts["rank"] |= {LISTED[name]: [words.pop(name)] for name in some}
        if words.get("hyperparameters", self.of(model).get("hyperparameters", _NONE).default) != "learn":
            parts.pop("hyperparameters", None)
        for part, own_words in parts.items():
            if part == "kernel" and "gamma" in words:
                own_words["gamma"] = words.pop("gamma")
            words[part] = class_at(PARTS[part])(**own_words)
        return words | dict(found)


def _weights_of_signs(flag: str, value: Any) -> Any:
    """Parse two weights of classes, of absent and of present labels."""
    if flag != "class_weight" or isinstance(value, str):
        return value
    if len(value) != _SIGNS:
        raise click.UsageError(f"--class-weight has {len(value)} number(s); use balanced, or ABSENT,PRESENT.")
    return dict(enumerate(value))


@cache
def model_table() -> ModelTable:
    kept = json.loads(Path(__file__).with_name("model_flags.json").read_text(encoding="utf-8"))
    flags = {}
    for flag, alike in kept["flags"].items():
        owners = {model: Parameter(**one) for one in alike for model in one.pop("models")}
        flags[flag] = {model: owners[model] for model in sorted(owners, key=[*MODELS, *owners].index)}
    return ModelTable(flags, kept["objects"])


def class_of(model: str) -> Any:
    return class_at(MODELS[model])


def class_at(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)


def models_on_clusters() -> list[str]:
    families = import_module("labelweave.dask").FAMILIES
    return [model for model in MODELS if class_of(model) in families]


class ModelFlag(click.Option):
    """A flag with the models that have it; its help is the most common one, or that of the chosen model."""

    owners: dict[str, Parameter]

    def help_of(self, model: str | None) -> str:
        """Return the help of the flag, with its defaults, and its models if they are few."""
        owners = self.owners if model is None else {model: self.owners[model]}
        own, counts = {one.says for one in owners.values()}, Counter(one.says for one in self.owners.values())
        text = max(counts, key=lambda said: (not _SEE_OTHER.search(said), said in own, counts[said]))
        text = _of_switch(text, is_off=self.name is not None and self.name.startswith("no_"))
        if model is None and len(owners) <= _MOST_PREFIXED:
            text = f"{', '.join(owners)}: {text[0].lower()}{text[1:]}"
        return f"{text}{_defaults(owners)}."


def model_flag_options() -> list[Callable[[Any], Any]]:
    return [_option(flag, owners) for flag, owners in model_table().flags.items()]


def _option(flag: str, owners: dict[str, Parameter]) -> Callable[[Any], Any]:
    words = [*dict.fromkeys(word for owner in owners.values() for word in owner.words)]
    numbers = sorted({number for owner in owners.values() for number in owner.numbers}, reverse=True)
    options, kind = dict[str, Any](), next(iter(owners.values())).kind
    if kind == "switch":
        options["is_flag"] = True
    elif kind == "text":
        options["metavar"] = "FILE"
    elif kind == "list":
        options |= {"callback": reading(_list(words, numbers)), "metavar": "|".join([*words, "VALUE,..."])}
    elif words and not numbers:
        options["type"] = click.Choice(words)
    elif words or len(numbers) > 1:
        options |= {"callback": reading(_value(words, numbers)), "metavar": "|".join([*words, "NUMBER"])}
    else:
        options["type"] = _TYPES[numbers[0]]

    def decorate(command: Any) -> Any:
        decorated = click.option(flag_of(flag), flag, default=None, cls=ModelFlag, **options)(command)
        made: Any = decorated.__click_params__[-1]
        made.owners = owners
        made.help = made.help_of(None)
        return decorated

    return decorate


def _of_switch(text: str, *, is_off: bool) -> str:
    what = text.removeprefix("Whether to ")
    if what == text:
        return f"Turn off: {text[0].lower()}{text[1:]}" if is_off else text
    return f"Do not {what}" if is_off else f"{what[0].upper()}{what[1:]}"


def _defaults(owners: dict[str, Parameter]) -> str:
    found: dict[str, list[str]] = {}
    for model, parameter in owners.items():
        if parameter.default is not None and parameter.kind != "switch":
            found.setdefault(_written(parameter.default), []).append(model)
    usual, *others = found or [""]
    words = [usual, *(f"{', '.join(found[value])} {value}" for value in others)]
    return f" [{'; '.join(words)}]" if found else ""


def _written(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _list(words: list[str], numbers: list[str]) -> Callable[[str], Any]:
    """Return a parser of comma-separated values; a single word or count stands for itself."""

    def read(text: str) -> Any:
        values = [plain_value(part.strip()) for part in text.split(",")]
        is_count = "int" in numbers and isinstance(values[0], int) and values[0] > 0
        return values[0] if len(values) == 1 and (text in words or is_count) else values

    return read


def _value(words: list[str], numbers: list[str]) -> Callable[[str], Any]:
    """Return a parser of a word or a number."""

    def read(text: str) -> Any:
        value = text if text in words else plain_value(text)
        if isinstance(value, str) and value not in words:
            wanted = f"a number nor {alternatives(words)}" if words else "a whole number nor a share"
            raise click.BadParameter(f"{text!r} is neither {wanted}.")
        return float(value) if isinstance(value, int) and "int" not in numbers else value

    return read
