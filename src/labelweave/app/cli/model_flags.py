"""The flags of ``labelweave fit`` that are parameters of the models: their help, and how values are read.

Which values a model takes is for its constructor to say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import click

from labelweave.app.cli.flags import plain_value, reading
from labelweave.app.cli.messages import alternatives, flag_of
from labelweave.app.cli.model_table import Parameter, model_table

_SEE_OTHER = re.compile(r"\b(?:as in|as of|see) [A-Z]")
_MOST_PREFIXED = 3  # models that the help of a flag names
_TYPES = {"int": click.INT, "float": click.FLOAT}


class ModelFlag(click.Option):
    """A flag with the models that have it; its help is what most of them say, or the one that is chosen."""

    owners: dict[str, Parameter]

    def help_of(self, model: str | None) -> str:
        """Say what the flag is, what it is without it, and of which models if these are few."""
        owners = self.owners if model is None else {model: self.owners[model]}
        own, counts = {one.says for one in owners.values()}, Counter(one.says for one in self.owners.values())
        text = max(counts, key=lambda said: (not _SEE_OTHER.search(said), said in own, counts[said]))
        text = f"Turn off: {text[0].lower()}{text[1:]}" if self.name and self.name.startswith("no_") else text
        if model is None and len(owners) <= _MOST_PREFIXED:
            text = f"{', '.join(owners)}: {text[0].lower()}{text[1:]}"
        return f"{text}{_defaults(owners)}."


def model_flag_options() -> list[Callable[[Any], Any]]:
    """Make the flags of all models."""
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


def _defaults(owners: dict[str, Parameter]) -> str:
    """Say what the models take without the flag."""
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
    """Make what reads values with commas between; a single word or count stands for itself."""

    def read(text: str) -> Any:
        values = [plain_value(part.strip()) for part in text.split(",")]
        is_single = text in words or ("int" in numbers and isinstance(values[0], int))
        return values[0] if len(values) == 1 and is_single else values

    return read


def _value(words: list[str], numbers: list[str]) -> Callable[[str], Any]:
    """Make what reads a word or a number."""

    def read(text: str) -> Any:
        value = text if text in words else plain_value(text)
        if isinstance(value, str) and value not in words:
            wanted = f"a number nor {alternatives(words)}" if words else "a whole number nor a share"
            raise click.BadParameter(f"{text!r} is neither {wanted}.")
        return float(value) if isinstance(value, int) and "int" not in numbers else value

    return read
