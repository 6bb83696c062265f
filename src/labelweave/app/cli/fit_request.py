"""What ``labelweave fit`` was asked for, in one record, and what makes no sense together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import click

from labelweave.app.cli.decision_flags import DECISIONS, refused_decisions
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import alternatives, flag_of, in_flags, refuse
from labelweave.app.cli.model_table import class_of, class_on_cluster, model_table, models_on_clusters

_TREES = ("taxonomy", "data_taxonomy", "class_paths")
_COVARIANCES = ("covariance", "covariance_from", "signatures")
_SOURCES = ("taxonomy", "data_taxonomy", *_COVARIANCES)
_OWNERS = {  # flags of structures, and which parameter a model must have for them
    **dict.fromkeys((*_SOURCES, "shrink"), "label_covariance"),
    "class_paths": "taxonomy",
    "graph": "graph",
    "label_descriptions": "label_mean",
}
_LEARNS, _OF_GRAPH = {"hyperparameters": ("learn",)}, {"graph": ("learn",)}
_THRESHOLDS = tuple(word for word in model_table().flags["threshold"]["max-margin"].words if word != "auto")
_NEEDS: dict[str, Mapping[str, tuple[str, ...]]] = {  # flags that say nothing unless another is so
    "gamma": {"kernel": ("rbf", "polynomial", "laplacian")},
    "degree": {"kernel": ("polynomial",)},
    "coef0": {"kernel": ("polynomial",)},
    **dict.fromkeys(("cv", "learning_rows", "learning_blocks", "max_learning_iter"), _LEARNS),
    **dict.fromkeys(("cliques_per_round", "max_rounds", "graph_tol", "clique_size", "early_stopping",
                     "refit"), _OF_GRAPH),
    "validation_fraction": {"threshold": _THRESHOLDS, **_OF_GRAPH},
}  # fmt: skip
_OF_KERNEL_MATRICES = ("max-margin", "low-rank")  # models whose kernel_rank stands for one
LISTED = {"rank": "ranks", "regularization": "regularizations"}
_AS_THEY_ARE = ("quiet", "graph", "one_class", "compare", "compare_folds", "key", "dask", "more")
_USUAL, _OTHERWISE = "auto", "max-margin"  # where no model is named, and with flags of its own
_OF_TEXTS = "kernel-logistic"  # and with descriptions of labels
_APART = f"{_USUAL} is for rows that fit each worker, and on a cluster taken where it is named"


@dataclass(frozen=True)
class Relations:
    """How labels vary together; fields are called as their flags."""

    taxonomy: str | None = None
    data_taxonomy: bool = False
    class_paths: bool = False
    covariance: str | None = None
    covariance_from: str | None = None
    signatures: str | None = None
    shrink: float | None = None
    label_descriptions: str | None = None

    def first(self, names: tuple[str, ...]) -> str | None:
        """Name the first flag that is given."""
        return next((name for name in names if getattr(self, name)), None)


@dataclass(frozen=True)
class FitRequest:
    """What ``labelweave fit`` was asked for.

    given: flags of the model's constructor, as :class:`~labelweave.app.cli.model_table.Parameter` knows them.
    is_model_named: whether the model is asked for, and not chosen by the other flags.
    why_this_model: what to say of that choice.
    one_class: whether every row has one class; None if no flag says it.
    decisions: the settings of what decides on the scores, by flag.
    dask: the cluster to fit on; more: further data files.
    """

    data: str
    out: str
    quiet: bool
    model: str
    is_model_named: bool
    given: Mapping[str, Any]
    graph: str | None
    relations: Relations
    one_class: bool | None
    decisions: Mapping[str, Mapping[str, Any]]
    source: DataFlags
    compare: str | None
    compare_folds: int
    key: bytes | None
    dask: str | None
    more: tuple[str, ...]
    why_this_model: str | None = None

    @classmethod
    def of(cls, data: str, out: str, options: Mapping[str, Any]) -> FitRequest:
        """Put the flags in order, and refuse what makes no sense together.

        Raises click.UsageError if there is any.
        """
        given = {name: value for name, value in options.items() if value is not None}
        request = cls(
            data,
            out,
            model=options["model"] or _USUAL,
            is_model_named=options["model"] is not None,
            given={flag: given[flag] for flag in model_table().flags if flag in given},
            relations=Relations(**{name: options[name] for name in Relations.__dataclass_fields__}),
            decisions={name: options[name] for name in DECISIONS if name in given},
            source=DataFlags.of(options),
            **{name: options[name] for name in _AS_THEY_ARE},
        ).with_model_of_flags()
        refuse(_why_not_owners(request))
        refuse(_why_not_together(request))
        refuse(_why_not_needs(request))
        request.check()
        return request

    def with_model_of_flags(self) -> FitRequest:
        """Take max-margin where no model is named and a flag is for it, or fits a model several times."""
        table = model_table()
        if self.relations.label_descriptions and not self.is_model_named:
            return replace(self, model=_OF_TEXTS)
        others = [flag for flag in self.given if not {_USUAL} & set(table.flags[flag])]
        flags = [
            *(flag for flag in others if _OTHERWISE in table.flags[flag]),
            *(flag for flag in (*_SOURCES, "shrink") if getattr(self.relations, flag) not in (None, False)),
        ]
        if flags:
            return self.otherwise(f"{flag_of(flags[0])} is a flag of {_OTHERWISE}")
        decision = next((name for name in self.decisions if name != "enforce"), None)
        if decision:
            return self.otherwise(f"{flag_of(decision)} fits a model several times")
        return self if self.dask is None else self.otherwise(_APART)

    def otherwise(self, reason: str) -> FitRequest:
        """Take max-margin for a reason, where no model is named and it has all the flags."""
        owners = model_table().flags
        if self.is_model_named or any(_OTHERWISE not in owners[flag] for flag in self.given):
            return self
        said = f"{reason}, so the model is {_OTHERWISE}; --model {_OTHERWISE} silences this."
        return replace(self, model=_OTHERWISE, why_this_model=said)

    def check(self) -> None:
        """Ask the classifier whether its parameters make sense; small structures stand for those to read.

        Raises click.UsageError with the flags of its reason.
        """
        from labelweave.decisions import LabelTextClassifier
        from labelweave.labels import LabelCovariance, Taxonomy

        tree, graph = self.relations.first(_TREES), self.graph
        covariance = tree or self.relations.first(_COVARIANCES)
        found: dict[str, Any] = {} if graph is None else {"graph": graph}
        is_of_texts = self.relations.label_descriptions is not None
        if tree is not None and self.has("taxonomy") and not is_of_texts:
            found["taxonomy"] = Taxonomy([("a", "b"), ("a", "c")])
        elif covariance is not None and not is_of_texts:
            found["label_covariance"] = LabelCovariance.identity(2)
        model = self.classifier(found)
        try:
            model._validate_params()
            if is_of_texts:
                LabelTextClassifier(model)._validate_params()
        except ValueError as error:
            flags = {"taxonomy": tree, "label_covariance": covariance}
            named = {name: flag_of(flag) for name, flag in flags.items() if flag is not None}
            raise click.UsageError(in_flags(error, named)) from None

    def classifier(self, found: Mapping[str, Any]) -> Any:
        """Make the classifier of the flags.

        found: what further flags say about labels, as keywords of its constructor.
        """
        parameters = {**model_table().keywords(self.model, self.given), **found}
        if self.dask is not None:
            return class_on_cluster(self.model)(**parameters)
        if self.chooses_rank:
            for name, several in LISTED.items():
                parameters |= {several: [parameters.pop(name)]} if name in parameters else {}
        return class_of(self.model, choosing=self.chooses_rank)(**parameters)

    @property
    def relates_labels(self) -> bool:
        """Whether a flag says how labels vary together."""
        return self.relations.first(_SOURCES) is not None

    @property
    def seed(self) -> int:
        """The seed of folds and random starts."""
        return int(self.given.get("seed", 0))

    @property
    def chooses_rank(self) -> bool:
        """Whether rank and regularization are chosen by cross-validation."""
        return any(name in self.given for name in model_table().choices(self.model))

    def value(self, flag: str) -> Any:
        """Give the value of a flag, or what the constructor takes without it; None if it has none such."""
        if flag == "graph":
            return (self.graph or "learn") if self.has("graph") else None
        parameter = model_table().of(self.model).get(flag)
        return self.given.get(flag, None if parameter is None else parameter.default)

    def has(self, parameter: str) -> bool:
        """Whether the model takes a structure of labels, such as ``"label_covariance"``."""
        return self.model in model_table().objects.get(parameter, ())


def _why_not_together(request: FitRequest) -> Iterator[str]:
    """Refuse flags that exclude each other; of parameters of the classifier it is asked."""
    relations, given, source = request.relations, set(request.given), request.source
    structures = [flag_of(name) for name in (*_SOURCES, "class_paths") if getattr(relations, name)]
    in_memory = relations.first(("data_taxonomy", "class_paths", "label_descriptions"))
    in_memory = in_memory or ("answers" if source.answers else "")
    covariances = _COVARIANCES if request.has("taxonomy") else _SOURCES
    one = "one_class" if request.one_class else "class_paths" if relations.class_paths else ""
    texts, beside = relations.label_descriptions, relations.first((*_COVARIANCES, "class_paths", "shrink"))
    decision = next(iter(request.decisions), "")
    several = next((name for name in request.decisions if name != "enforce"), "")
    choosing = next((name for name in model_table().choices(request.model) if name in given), "")
    twice = next((pair for pair in LISTED.items() if set(pair) <= given), ())
    wrong: tuple[tuple[Any, str], ...] = (
        (request.dask is None and request.more, f"{''.join(request.more[:1])} is a second data file; --dask "
         "takes several, without it give one."),
        (request.dask and in_memory, f"{flag_of(in_memory)} is for data in memory, and does not go with "
         "--dask."),
        (request.dask and choosing, "--dask takes one --rank and --regularization, not a choice of several."),
        (relations.class_paths and request.one_class is False, "--class-paths has one class a row, which "
         "--many-labels rules out."),
        (one and source.label_separator, "--label-separator lists several labels a row, but "
         f"{flag_of(one)} wants one class."),
        (len(structures) > 1, f"{' and '.join(structures[:2])} both describe the labels; give one of them."),
        (relations.shrink is not None and not relations.first(covariances), "--shrink has no covariance to "
         f"shrink; give one of {', '.join(map(flag_of, covariances))} too."),
        (texts and beside, f"--label-descriptions and {flag_of(beside or '')} both describe the labels; give "
         "one of them."),
        (texts and decision, f"--label-descriptions does not go with {flag_of(decision)}, which has no rows "
         "for labels that DATA lacks; give --threshold."),
        (texts and choosing, "--label-descriptions goes with one --rank and --regularization, not with a "
         "choice of several."),
        (twice, f"{' and '.join(map(flag_of, twice))} name the same thing; give one of them."),
        (choosing and set(LISTED) <= given, "--rank and --regularization leave nothing to choose for "
         f"{flag_of(choosing)}; give --ranks or --regularizations."),
        ("checkpoint" in given and several, f"--checkpoint keeps one fit, but {flag_of(several)} fits "
         "several times; leave one of them out, or give the fitted model to labelweave decide."),
        ({"intercept_scaling", "no_intercept"} <= given, "--intercept-scaling has no intercept to scale, "
         "which --no-intercept rules out."),
    )  # fmt: skip
    yield from (said for is_wrong, said in wrong if is_wrong)
    yield from refused_decisions(request.decisions, has_threshold="threshold" in given)


def _why_not_owners(request: FitRequest) -> Iterator[str]:
    """Refuse flags of other models, and models that are fitted in memory alone."""
    table, model = model_table(), request.model
    if request.dask is not None and model not in models_on_clusters():
        yield f"--dask goes with --model {alternatives(models_on_clusters())}, not with {model}."
    owners = {flag: list(table.flags[flag]) for flag in request.given}
    relations = {**vars(request.relations), "graph": request.graph}
    owners |= {f: list(table.objects[p]) for f, p in _OWNERS.items() if relations[f] not in (None, False)}
    for flag, models in owners.items():
        if model not in models and not (flag == "seed" and request.decisions):
            yield f"{flag_of(flag)} goes with --model {alternatives(models)}, not with {model}."


def _why_not_needs(request: FitRequest) -> Iterator[str]:
    """Refuse flags that the values of others leave without a meaning."""
    needs = {flag: _NEEDS[flag] for flag in request.given if flag in _NEEDS}
    if "kernel_rank" in request.given and request.model in _OF_KERNEL_MATRICES:
        needs["kernel_rank"] = _NEEDS["gamma"]
    if request.chooses_rank:
        needs.pop("cv", None)
    for flag, others in needs.items():
        values = {other: request.value(other) for other in others}
        known = {other: value for other, value in values.items() if value is not None}
        if known and not any(value in others[other] for other, value in known.items()):
            ways = " or ".join(f"{flag_of(other)} {alternatives(others[other])}" for other in known)
            yield f"{flag_of(flag)} goes with {ways}, not with {next(iter(known.values()))}."
