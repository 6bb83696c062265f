"""A request to ``labelweave fit`` in one record, and the combinations of flags that are invalid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import click

from labelweave.app.cli.decision_flags import DECIDING, DECISIONS, Settings, refused_decisions
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import Exclusion, alternatives, excluded, flag_of, in_flags, is_given, refuse
from labelweave.app.cli.model_flags import LISTED, class_of, model_table, models_on_clusters

_TREES = ("taxonomy", "data_taxonomy", "class_paths")
_COVARIANCES = ("covariance", "covariance_from", "signatures")
_SOURCES = ("taxonomy", "data_taxonomy", *_COVARIANCES)
_STRUCTURES = (*_SOURCES, "class_paths")
_TEXTS = "label_descriptions"
RELATIONS = (*_STRUCTURES, "shrink", _TEXTS)
_OWNERS = {  # flags of label structures, and the parameter that a model must have for them
    **dict.fromkeys((*_SOURCES, "shrink"), "label_covariance"),
    "class_paths": "taxonomy",
    "graph": "graph",
    "device": "device",
    _TEXTS: "label_mean",
}
_NEEDS: dict[str, Mapping[str, tuple[str, ...]]] = {  # flags that need a value of another flag
    "gamma": {"kernel": ("rbf", "poly", "laplacian")},
}
_OF_PARTS = {"kernel": "poly", "hyperparameters": "learn", "graph": "learn"}
_OF_KERNEL_MATRICES = ("max-margin", "low-rank")  # models where kernel_rank implies one
_CHOICES = tuple(  # flags that choose a model by cross-validation
    flag for flag, owners in model_table().flags.items() if any(one.is_choice for one in owners.values())
)
_BOTH_DESCRIBE = "{} and {} both describe the labels; use one of them."
_EXCLUSIONS: tuple[Exclusion, ...] = (
    (("dask",), ("data_taxonomy", "class_paths", _TEXTS, "answers", "label_names", "no_header", "dry_run",
      "groups", "encoder"),
     "{1} is for data in memory, and cannot be combined with --dask."),
    (("device",), ("dask", "compare"), "{} is for one fit on this machine, and cannot be combined with {}."),
    (("class_paths",), ("many_labels",), "{} has one class per row, which {} excludes."),
    (("one_class", "class_paths"), ("label_separator",),
     "{1} lists several labels per row, but {0} needs one class."),
    (_TREES, _TREES, _BOTH_DESCRIBE),
    (("groups",), (*DECISIONS, *_STRUCTURES, _TEXTS),
     "{} is only for a single model, and cannot be combined with {}."),
    ((_TEXTS,), (*_COVARIANCES, "class_paths", "shrink", "tie", "label_covariance"), _BOTH_DESCRIBE),
    ((_TEXTS,), tuple(DECISIONS),
     "{} cannot be combined with {}, which has no rows for labels that DATA lacks; use --threshold."),
    ((_TEXTS,), _CHOICES, "{} needs one --rank and --alpha, not a choice of several."),
    *(((one,), (several,), "{} and {} set the same parameter; use one of them.")
      for one, several in LISTED.items()),
    (("threshold",), DECIDING, "{} and {} both set thresholds; use one of them."),
)  # fmt: skip
_USUAL, _OTHERWISE = "auto", "max-margin"  # default model, and the default with its flags
_OF_TEXTS = "kernel-logistic"  # default with descriptions of labels
_APART = f"on a cluster {_USUAL} needs rows that fit each worker, and is used only where it is named"


@dataclass(frozen=True)
class FitRequest:
    """A request to ``labelweave fit``.

    one_class: whether every row has one class; None if no flag sets it.
    why_this_model: the reason of a choice of model that no flag names.
    tree: the taxonomy of a file, once it is read.
    """

    data: str
    out: str
    flags: DataFlags
    model: str
    one_class: bool | None
    why_this_model: str | None = None
    tree: Any = None

    @classmethod
    def of(cls, data: str, out: str, options: Mapping[str, Any]) -> FitRequest:
        flags = DataFlags(**options)
        request = cls(data, out, flags, flags.model or _USUAL, flags.one_class).with_model_of_flags()
        refuse(_why_not_owners(request))
        refuse(excluded({**options, "many_labels": flags.one_class is False}, _EXCLUSIONS))
        refuse(_why_not_together(request))
        refuse(_why_not_needs(request))
        request.check()
        return request

    @property
    def is_model_named(self) -> bool:
        """Whether a flag names the model, rather than other flags implying it."""
        return self.flags.model is not None

    @property
    def fits_groups(self) -> bool:
        """Whether a model is fitted, not only compared, with folds of groups."""
        return bool(self.flags.groups) and self.flags.dry_run is not None

    @property
    def given(self) -> dict[str, Any]:
        """The flags that set constructor parameters."""
        flags = {flag: getattr(self.flags, flag) for flag in model_table().flags}
        return {flag: value for flag, value in flags.items() if value is not None}

    @property
    def decisions(self) -> dict[str, Settings]:
        """The settings of decision flags, by flag."""
        flags = {name: getattr(self.flags, name) for name in DECISIONS}
        return {name: settings for name, settings in flags.items() if settings is not None}

    def first(self, names: Iterable[str]) -> str | None:
        return next((name for name in names if is_given(getattr(self.flags, name))), None)

    def with_model_of_flags(self) -> FitRequest:
        """Use max-margin where no model is named and a flag belongs to it, or fits a model several times."""
        table = model_table()
        if self.flags.label_descriptions and not self.is_model_named:
            return replace(self, model=_OF_TEXTS)
        others = [flag for flag in self.given if not {_USUAL} & set(table.flags[flag])]
        is_usual = "enforce" in self.decisions or any(
            _OTHERWISE not in table.flags[one] for one in self.given
        )
        sources = [
            one for one in (*_SOURCES, "shrink") if one != "taxonomy" or not is_usual
        ]  # auto obeys it only
        flags = [
            *(flag for flag in others if _OTHERWISE in table.flags[flag]),
            *(flag for flag in sources if is_given(getattr(self.flags, flag))),
        ]
        if flags:
            return self.otherwise(f"{flag_of(flags[0])} is a flag of {_OTHERWISE}")
        decision = next((name for name in self.decisions if name != "enforce"), None)
        if decision:
            return self.otherwise(f"{flag_of(decision)} fits a model several times")
        return self if self.flags.dask is None else self.otherwise(_APART)

    def otherwise(self, reason: str) -> FitRequest:
        """Use max-margin for a reason, where no model is named and it has all the flags."""
        owners = model_table().flags
        is_settled = self.is_model_named or self.fits_groups
        if is_settled or any(_OTHERWISE not in owners[flag] for flag in self.given):
            return self
        said = f"{reason}, so the model is {_OTHERWISE}; --model {_OTHERWISE} silences this."
        return replace(self, model=_OTHERWISE, why_this_model=said)

    def check(self) -> None:
        """Validate the classifier's parameters; small structures replace those to read."""
        from labelweave.decisions import LabelTextClassifier
        from labelweave.kernels import Kernel
        from labelweave.labels import LabelCovariance, Taxonomy

        tree, graph = self.first(_TREES), self.flags.graph
        covariance = tree or self.first(_COVARIANCES)
        found: dict[str, Any] = {} if graph is None else {"graph": graph}
        is_of_texts = self.flags.label_descriptions is not None
        if tree is not None and self.has("taxonomy") and not is_of_texts:
            found["taxonomy"] = Taxonomy([("a", "b"), ("a", "c")])
        elif covariance is not None and self.has("label_covariance") and not is_of_texts:
            several = sum(is_given(getattr(self.flags, name)) for name in _SOURCES)
            given = [LabelCovariance.identity(2)] * several
            found["label_covariance"] = given[0] if several == 1 else LabelCovariance.weighted(given)
        model = self.classifier(found)
        try:
            model._validate_params()
            if isinstance(kernel := getattr(model, "kernel", None), Kernel):
                kernel.parameter_names()  # validates parameters
            if self.flags.dask is not None:
                import_module("labelweave.dask").refuse_in_memory(model)
            if is_of_texts:
                LabelTextClassifier(model)._validate_params()
        except ValueError as error:
            own = "label_covariance" if "label_covariance" in self.given else None
            flags = {"taxonomy": tree, "label_covariance": own or covariance}
            named = {name: flag_of(flag) for name, flag in flags.items() if flag is not None}
            raise click.UsageError(in_flags(error, named)) from None

    def classifier(self, found: Mapping[str, Any]) -> Any:
        """Make the classifier of the flags.

        found: label structures of further flags, as keywords of its constructor.
        """
        return class_of(self.model)(**model_table().keywords(self.model, self.given, found))

    @property
    def tree_file(self) -> Any:
        return self.flags.taxonomy or self.decisions.get("enforce", {}).get("taxonomy")

    @property
    def relates_labels(self) -> bool:
        return self.first(_SOURCES) is not None

    @property
    def seed(self) -> int:
        return int(self.given.get("seed", 0))

    @property
    def chooses_rank(self) -> bool:
        return any(name in self.given for name in model_table().choices(self.model))

    def value(self, flag: str) -> Any:
        """Return the value of a flag, or the constructor's default; None if it has none."""
        if flag == "graph":
            return (self.flags.graph or "learn") if self.has("graph") else None
        parameter = model_table().of(self.model).get(flag)
        return self.given.get(flag, None if parameter is None else parameter.default)

    def has(self, parameter: str) -> bool:
        """Whether the model has a label structure, such as ``"label_covariance"``."""
        return self.model in model_table().objects.get(parameter, ())


def _why_not_together(request: FitRequest) -> Iterator[str]:
    """Yield reasons that involve more than a pair of flags; the classifier validates its parameters."""
    covariances = _COVARIANCES if request.has("taxonomy") else _SOURCES
    if request.has("taxonomy") and (tree := request.first(_TREES)) and (other := request.first(_COVARIANCES)):
        yield _BOTH_DESCRIBE.format(flag_of(tree), flag_of(other))
    if request.flags.dask is None and request.flags.more:
        yield f"{request.flags.more[0]} is a second data file; use one file, or --dask."
    if request.flags.path_separator is not None and not request.flags.class_paths:
        yield "--path-separator splits the classes of --class-paths; add --class-paths."
    if request.flags.path_separator == "":
        yield "--path-separator is empty; use the separator of the names in a path, such as ' > '."
    for name in ("relations", "outside"):
        if getattr(request.flags, name) and not request.tree_file:
            yield f"{flag_of(name)} is for a taxonomy in a file; add --taxonomy FILE."
    if request.flags.shrink is not None and not request.first(covariances):
        yield f"--shrink has no covariance to shrink; add one of {', '.join(map(flag_of, covariances))} too."
    if request.first(covariances) and "label_covariance" in request.given:
        yield _BOTH_DESCRIBE.format("--label-covariance", flag_of(str(request.first(covariances))))
    if request.chooses_rank and set(LISTED) <= set(request.given):
        choosing = next(flag for flag in _CHOICES if flag in request.given)
        yield (
            f"--rank and --alpha leave nothing to choose for {flag_of(choosing)}; use --ranks or --alphas."
        )
    several = [name for name in DECIDING if name in request.decisions]
    if request.flags.dask is not None and "checkpoint" in request.given and several:
        yield f"--checkpoint stores only one fit on a cluster, but {flag_of(several[0])} fits several times."
    yield from refused_decisions(request.decisions)


def _why_not_owners(request: FitRequest) -> Iterator[str]:
    """Yield flags of other models, and models that only fit in memory."""
    table, model = model_table(), request.model
    if request.flags.dask is not None and model not in models_on_clusters():
        yield f"--dask requires --model {alternatives(models_on_clusters())}, not {model}."
    owners = {flag: list(table.flags[flag]) for flag in request.given}
    owners |= {f: list(table.objects[p]) for f, p in _OWNERS.items() if request.first([f])}
    owners |= {"groups": [_USUAL]} if request.fits_groups else {}
    if request.flags.dask is None:
        owners.pop("taxonomy", None)  # any model can obey it
    for flag, models in owners.items():
        if model not in models and not (flag == "seed" and request.decisions):
            yield f"{flag_of(flag)} requires --model {alternatives(models)}, not {model}."


def _why_not_needs(request: FitRequest) -> Iterator[str]:
    """Yield flags that have no effect with the values of others."""
    needs = {flag: _NEEDS[flag] for flag in request.given if flag in _NEEDS}
    for flag, parameter in model_table().of(request.model).items():
        if flag in request.given and (parts := [part for part in parameter.parts if part in _OF_PARTS]):
            needs[flag] = {part: (_OF_PARTS[part],) for part in parts}
    if "kernel_rank" in request.given and request.model in _OF_KERNEL_MATRICES:
        needs["kernel_rank"] = _NEEDS["gamma"]
    if request.chooses_rank:
        needs.pop("cv", None)
    for flag, others in needs.items():
        values = {other: request.value(other) for other in others}
        known = {other: value for other, value in values.items() if value is not None}
        if known and not any(value in others[other] for other, value in known.items()):
            ways = " or ".join(f"{flag_of(other)} {alternatives(others[other])}" for other in known)
            yield f"{flag_of(flag)} requires {ways}, not {next(iter(known.values()))}."
