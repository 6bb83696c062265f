"""Store the descriptions of the models' parameters for the flags of ``labelweave fit``.

    python scripts/write_model_flags.py

The command line reads this file, since importing the constructors takes seconds.  Each parameter is a flag of
the same name; its constraints determine the allowed words and numbers, its numpydoc the help.
"""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelweave.app.cli.model_flags import MODELS, PARTS, class_at, class_of
from labelweave.estimators.parameters import COUNT, NON_NEGATIVE, RULES

PLACE = Path(__file__).parents[1] / "src" / "labelweave" / "app" / "cli" / "model_flags.json"
_FLAGS = {"n_jobs": "jobs", "random_state": "seed", "fit_intercept": "no_intercept"}
_LISTS = ("ranks", "alphas", "members", "tie", "flip_rates", "class_weight")
_NO_FLAGS: dict[str, tuple[str, ...] | None] = {
    "warm_start": None,  # of any model: a process has no earlier fit
    "verbose": None,  # the command shows progress in any case
    "solver": ("kernel-logistic", "label-graph"),
    "tie": ("max-margin", "low-rank"),
    "loss": ("kernel-logistic",),  # an object if it is not the usual one
}
_NO_WORDS = {"kernel": ("precomputed",)}
_IN_WORDS = ("gamma",)  # parameters of parts that are flags of the model
_OBJECTS_TOO = ("label_covariance",)  # made by other flags
_OF_KERNELS = {"degree": [COUNT], "coef0": [NON_NEGATIVE]}
_DEFAULTS = {"scaling": "auto"}  # of the command, if they differ from those of constructors
_ROLES = re.compile(r":\w+:`([^`]*)`|``")


def described() -> dict[str, Any]:
    """Find every flag with the models that have it, and every other parameter with its models."""
    flags: dict[str, dict[str, Any]] = {}
    objects: dict[str, list[str]] = {}
    for model in MODELS:
        for parameter in _parameters_of(model):
            name, without = parameter["name"], _NO_FLAGS.get(parameter["name"], ())
            usual = f"no_{name}" if parameter["default"] is True else name
            if parameter["kind"] == "object" or name in _OBJECTS_TOO:
                objects.setdefault(name, []).append(model)
            if parameter["kind"] != "object" and without is not None and model not in without:
                known = flags.setdefault(_FLAGS.get(name, usual), {}).setdefault(model, parameter)
                if known is not parameter:
                    known["parts"] += parameter["parts"]
    on_devices = next(
        rule.allowed_words for rule in RULES if not rule.names and rule.fact == "rows on a device"
    )
    objects["device"] = [model for model in MODELS if class_of(model).__name__ in on_devices]
    return {"flags": flags, "objects": objects}


def written(found: dict[str, Any]) -> str:
    """Write the parameters as JSON, one line for the models with the same description of a flag."""
    flags = []
    for flag, owners in found["flags"].items():
        alike: dict[str, list[str]] = {}
        for model, one in owners.items():
            alike.setdefault(json.dumps(one), []).append(model)
        lines = [f'   {{"models": {json.dumps(models)}, {one[1:]}' for one, models in alike.items()]
        flags.append(f"  {json.dumps(flag)}: [\n" + ",\n".join(lines) + "]")
    objects = json.dumps(found["objects"])
    return '{\n "flags": {\n' + ",\n".join(flags) + "\n },\n" + f' "objects": {objects}\n}}\n'


def _parameters_of(model: str) -> Iterator[dict[str, Any]]:
    plain = class_of(model)
    own = inspect.signature(plain).parameters
    for parameter in own.values():
        yield _parameter(plain, parameter, [])
        if parameter.name not in PARTS or not _takes(plain, parameter.name):
            continue
        part = class_at(PARTS[parameter.name])
        for inner in inspect.signature(part).parameters.values():
            if inner.name not in _IN_WORDS:
                yield _parameter(part, inner, [parameter.name])


def _takes(kind: Any, name: str) -> bool:
    """Return whether a model takes the object of a part, not only a word of the same name."""
    said = re.search(rf"^{name} : (?:.*\\\n)*.*", inspect.getdoc(kind) or "", re.MULTILINE)
    part = "Kernel" if name == "kernel" else PARTS[name].split(":")[1]
    return said is not None and re.search(rf"\b{part}\b", said[0]) is not None


def _parameter(kind: Any, parameter: inspect.Parameter, parts: list[str]) -> dict[str, Any]:
    name, default = parameter.name, parameter.default
    allowed = getattr(kind, "_parameter_constraints", _OF_KERNELS).get(name, ())
    allowed = () if isinstance(allowed, str) else allowed
    told = re.search(
        rf"^(?:\w+, )*{name}(?:, \w+)* : (?P<type>(?:.*\\\n)*.*)\n(?P<says>(?:    .*\n?|\n)+)",
        inspect.getdoc(kind) or "",
        re.MULTILINE,
    )
    said = told["type"] if told else ""
    words = [str(word) for part in allowed for word in getattr(part, "options", ())]
    words = [w for w in words if w not in _NO_WORDS.get(name, ()) and (f'"{w}"' in said or not said)]
    numbers = sorted({number for part in allowed for number in _numbers(part)}, reverse=True)
    form = "list" if name in _LISTS else "value" if words or numbers else "object"
    form = "switch" if "boolean" in allowed else "text" if name == "checkpoint" else form
    plain = default if isinstance(default, (bool, int, float, str, type(None))) else list(default)
    says = _ROLES.sub(r"\1", " ".join(told["says"].split())) if told else ""
    return {
        "name": name,
        "kind": form,
        "default": _DEFAULTS.get(name, plain),
        "words": sorted(words, key=lambda word: (said.find(f'"{word}"'), word)),
        "numbers": numbers,
        "parts": parts,
        "says": re.split(r"\.(?:\s+(?=[\"A-Z])|$)", says, maxsplit=1)[0].replace("None for", "without it"),
    }


def _numbers(part: Any) -> Iterator[str]:
    """Yield the types of numbers that a constraint allows."""
    kind = getattr(part, "type", part)
    if part in ("random_state", "cv_object") or getattr(kind, "__name__", "") == "Integral":
        yield "int"
    elif getattr(kind, "__name__", "") == "Real":
        yield "float"


if __name__ == "__main__":
    PLACE.write_text(written(described()), encoding="utf-8")
