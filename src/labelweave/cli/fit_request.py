"""What ``labelweave fit`` was asked for, in one record, and what makes no sense together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from labelweave.cli.decision_flags import DECISIONS, refused_decisions
from labelweave.cli.flags import DataFlags
from labelweave.cli.messages import flag_of, refuse
from labelweave.cli.model_flags import alternatives, refused_values
from labelweave.cli.model_table import model_table

_TREES = ("taxonomy", "data_taxonomy", "class_paths")
_COVARIANCES = ("covariance", "covariance_from", "signatures")
_SOURCES = ("taxonomy", "data_taxonomy", *_COVARIANCES)
_OWNERS = {  # flags of structures, and which parameter a model must have for them
    **dict.fromkeys((*_SOURCES, "shrink"), "label_covariance"),
    "class_paths": "taxonomy",
    "graph": "graph",
}
_WITH_GAMMA = ("rbf", "polynomial", "laplacian")
_KERNELS_OF = {"gamma": _WITH_GAMMA, "degree": ("polynomial",), "coef0": ("polynomial",)}
_EXPLICIT = ("linear", "cosine")  # kernels of which no matrix is made
_KERNEL_SOLVERS = ("alternating_directions", "block_ascent", "working_set")
_SOLVERS_OF = {"factorization": ("alternating_directions",)}
_LEARNING = ("cv", "learning_rows", "learning_blocks", "max_learning_iter", "coupling")
_GRAPH_LEARNING = ("cliques_per_round", "max_rounds", "graph_tol", "clique_size", "early_stopping", "refit",
                   "validation_fraction")  # fmt: skip
LISTED = {"rank": "ranks", "regularization": "regularizations"}
_AS_THEY_ARE = ("quiet", "graph", "one_class", "compare", "compare_folds", "key", "dask", "more")
_USUAL, _OTHERWISE = "auto", "max-margin"  # where no model is named, and with flags of its own
_OF_TEXTS, _TAKE_TEXTS = "kernel-logistic", ("max-margin", "kernel-logistic", "low-rank")
_KERNELS_OF_ROWS = ("linear", "rbf", "polynomial", "laplacian", "cosine")
_NEWTON_OF_PARTS = ("auto", "function_gradients", "symmetrized_gradients")
_ON_ALL_CLUSTERS: dict[str, tuple[str, ...]] = {"scaling": ("none",), "jobs": ()}
_ON_CLUSTERS: dict[str, dict[str, tuple[str, ...]]] = {  # models, and which values flags may have there
    "max-margin": {
        "kernel": _KERNELS_OF_ROWS,
        "prune": ("off",),
        "solver": ("auto", "coordinate_ascent"),
        "factorization": ("auto",),
    },
    "low-rank": {"kernel": _KERNELS_OF_ROWS, "hyperparameters": ("fixed",), "learning_rows": ()},
    "kernel-logistic": {"kernel": _KERNELS_OF_ROWS, "solver": _NEWTON_OF_PARTS},
    "label-graph": {"kernel": ("linear",), "inputs": ("features",)},
    "label-tree": {},
    "auto": {},
}
ON_CLUSTERS = list(_ON_CLUSTERS)
_APART = f"{_USUAL} is for rows that fit each worker, and on a cluster taken where it is named"
_TREE_TIES = ("level", "subtree")
_HOW_TO_GIVE_A_TREE = f"give one of {', '.join(map(flag_of, _TREES))}."


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

    given: flags of the model's constructor, as :class:`~labelweave.cli.model_table.Parameter` knows them.
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
        refuse(chain.from_iterable(reasons(request) for reasons in _REASONS))
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

    @property
    def relates_labels(self) -> bool:
        """Whether a flag says how labels vary together."""
        return self.relations.first(_SOURCES) is not None

    @property
    def seed(self) -> int:
        """The seed of folds and random starts."""
        return int(self.given.get("seed", 0))

    @property
    def kernel(self) -> str:
        """The kernel of the model, if it has kernels."""
        return str(self.value("kernel") or "linear")

    @property
    def chooses_rank(self) -> bool:
        """Whether rank and regularization are chosen by cross-validation."""
        return any(name in self.given for name in model_table().choices(self.model))

    def value(self, flag: str) -> Any:
        """Give the value of a flag, or what the constructor takes without it; None if it has none such."""
        parameter = model_table().of(self.model).get(flag)
        return self.given.get(flag, None if parameter is None else parameter.default)

    def has(self, parameter: str) -> bool:
        """Whether the model takes a structure of labels, such as ``"label_covariance"``."""
        return self.model in model_table().objects.get(parameter, ())


def _why_not_labels(request: FitRequest) -> Iterator[str]:
    """Refuse flags that say different things of the labels of a row, or of how labels go together."""
    relations, one = request.relations, request.one_class
    if relations.class_paths and one is False:
        yield "--class-paths has one class a row, which --many-labels rules out."
    if (one or relations.class_paths) and request.source.label_separator:
        flag = "--one-class" if one else "--class-paths"
        yield f"--label-separator lists several labels a row, but {flag} wants one class."
    flags = [flag_of(name) for name in (*_SOURCES, "class_paths") if getattr(relations, name)]
    if len(flags) > 1:
        yield f"{flags[0]} and {flags[1]} both describe the labels; give one of them."
    if relations.shrink is not None and not flags:
        every = ", ".join(map(flag_of, _SOURCES))
        yield f"--shrink has no covariance to shrink; give one of {every} too."


def _why_not_owners(request: FitRequest) -> Iterator[str]:
    """Refuse flags of other models, and values of theirs."""
    table, model = model_table(), request.model
    owners = {flag: list(table.flags[flag]) for flag in request.given}
    relations = {**vars(request.relations), "graph": request.graph}
    owners |= {f: list(table.objects[p]) for f, p in _OWNERS.items() if relations[f] not in (None, False)}
    for flag, models in owners.items():
        if model not in models and not (flag == "seed" and request.decisions):
            yield f"{flag_of(flag)} goes with --model {alternatives(models)}, not with {model}."
    yield from refused_values(model, dict(request.given))
    if {"intercept_scaling", "no_intercept"} <= set(request.given):
        yield "--intercept-scaling has no intercept to scale, which --no-intercept rules out."


def _why_not_texts(request: FitRequest) -> Iterator[str]:
    """Refuse what does not go with texts of labels."""
    relations = request.relations
    if not relations.label_descriptions:
        return
    if request.model not in _TAKE_TEXTS:
        yield f"--label-descriptions goes with --model {alternatives(_TAKE_TEXTS)}, not with {request.model}."
    other = relations.first((*_COVARIANCES, "class_paths", "shrink"))
    if other is not None:
        yield f"--label-descriptions and {flag_of(other)} both describe the labels; give one of them."
    if request.decisions:
        yield (
            f"--label-descriptions does not go with {flag_of(next(iter(request.decisions)))}, which has no "
            "rows for labels that DATA lacks; give --threshold."
        )
    if request.given.get("scaling", "none") not in ("none", "unit"):
        scaling = request.given["scaling"]
        yield f"--label-descriptions needs counts of words, which --scaling {scaling} changes."
    if request.chooses_rank:
        yield "--label-descriptions goes with one --rank and --regularization, not with a choice of several."


def _why_not_low_rank(request: FitRequest) -> Iterator[str]:
    if request.model != "low-rank":
        return
    given = request.given
    for single, several in LISTED.items():
        if single in given and several in given:
            yield f"--{single} and --{several} name the same thing; give one of them."
    if request.chooses_rank and set(LISTED) <= set(given):
        flag = next(name for name in model_table().choices(request.model) if name in given)
        yield (
            f"--rank and --regularization leave nothing to choose for {flag_of(flag)}; give --ranks or "
            "--regularizations."
        )
    learns, ridge = request.value("hyperparameters") == "learn", ("squared", "ridge")
    if learns and not request.chooses_rank and (request.value("loss"), request.value("penalty")) != ridge:
        yield "--hyperparameters learn goes with --loss squared and --penalty ridge only."
    if "kernel_rank" in given and request.kernel in _EXPLICIT:
        yield f"--kernel-rank stands for a kernel matrix; --kernel {request.kernel} needs none: give --rank."


def _why_not_graph(request: FitRequest) -> Iterator[str]:
    threshold = request.value("threshold")
    holds_out = threshold not in (None, "auto") and not isinstance(threshold, float)
    flag = next((name for name in _GRAPH_LEARNING if name in request.given), None)
    if flag == "validation_fraction" and holds_out:
        return
    if request.has("graph") and flag is not None and request.graph not in (None, "learn"):
        yield f"{flag_of(flag)} is about learning the graph, which --graph {request.graph} rules out."


def _why_not_learning(request: FitRequest) -> Iterator[str]:
    wanted = (
        name for name in _LEARNING if name in request.given and not (name == "cv" and request.chooses_rank)
    )
    flag = next(wanted, None)
    if flag is None or request.value("hyperparameters") == "learn":
        return
    if "hyperparameters" in request.given:
        yield f"{flag_of(flag)} is about learning, which --hyperparameters fixed rules out."
    or_else = ", or --ranks or --regularizations" if flag == "cv" else ""
    yield f"{flag_of(flag)} is about learning; give --hyperparameters learn too{or_else}."


def _why_not_threshold(request: FitRequest) -> Iterator[str]:
    parameter = model_table().of(request.model).get("threshold")
    if parameter is None or "validation_fraction" not in request.given:
        return
    if request.model == "label-graph" and request.value("graph") in (None, "learn"):
        return  # rounds are measured on these rows
    rules = [word for word in parameter.words if word != "auto"]
    if request.value("threshold") not in rules:
        yield f"--validation-fraction goes with --threshold and one of {', '.join(rules)}."


def _why_not_prior(request: FitRequest) -> Iterator[str]:
    """Refuse structures that a prior with a scale of its own cannot have."""
    if not request.has("taxonomy"):
        return
    relations = request.relations
    tree, covariance = relations.first(_TREES), relations.first(_COVARIANCES)
    structure, coupling = tree or covariance, request.given.get("coupling")
    if coupling is not None and structure is not None:
        yield f"--coupling and {flag_of(structure)} both describe the labels; give one of them."
    if relations.shrink is not None and tree is not None:
        which = ", ".join(map(flag_of, _COVARIANCES))
        yield f"--shrink goes with {which} here; with {flag_of(tree)} scales are learned."
    tie = request.value("tie")
    words, other = (tie,) if isinstance(tie, str) else tie, covariance if coupling is None else "coupling"
    if other is not None and tie != "shared":
        yield f"--tie {','.join(words)} does not go with {flag_of(other)}, which shares one kernel."
    needs_tree = next((word for word in words if word in _TREE_TIES), None)
    wanted = {"tie": needs_tree, "decision": request.given.get("decision", "most_probable")}
    for flag, value in wanted.items():
        if tree is None and value not in (None, "most_probable"):
            yield f"--{flag} {value} needs a taxonomy; {_HOW_TO_GIVE_A_TREE}"


def _why_not_kernel(request: FitRequest) -> Iterator[str]:
    given, kernel = request.given, request.kernel
    solver = given.get("solver", "auto")
    for flag, kernels in _KERNELS_OF.items():
        if flag in given and kernel not in kernels:
            yield f"--{flag} goes with --kernel {alternatives(kernels)}, not with {kernel}."
    for flag, solvers in _SOLVERS_OF.items():
        if flag in given and solver not in ("auto", *solvers):
            yield f"{flag_of(flag)} goes with --solver {alternatives(solvers)}, not with {solver}."
    if "kernel_rank" in given and request.model == _OTHERWISE and kernel in _EXPLICIT:
        yield f"--kernel-rank stands for a kernel matrix; --kernel {kernel} needs none: leave it out."
    has_columns = "kernel_rank" in given or request.dask is not None
    if solver == "coordinate_ascent" and kernel in _WITH_GAMMA and not has_columns:
        yield (
            f"--solver coordinate_ascent walks features, which --kernel {kernel} has none of; "
            f"give {alternatives(_KERNEL_SOLVERS)}, or --kernel-rank."
        )


def _why_not_decisions(request: FitRequest) -> Iterator[str]:
    yield from refused_decisions(request.decisions, has_threshold="threshold" in request.given)
    several = next((name for name in request.decisions if name != "enforce"), None)
    if "checkpoint" in request.given and several is not None:
        yield (
            f"--checkpoint keeps one fit, but {flag_of(several)} fits several times; "
            "leave one of them out, or give the fitted model to labelweave decide."
        )


def _why_not_cluster(request: FitRequest) -> Iterator[str]:
    """Refuse what is not done on a cluster."""
    if request.dask is None:
        if request.more:
            yield f"{request.more[0]} is a second data file; --dask takes several, without it give one."
        return
    if request.model not in _ON_CLUSTERS:
        yield f"--dask goes with --model {alternatives(_ON_CLUSTERS)}, not with {request.model}."
    described = request.relations.first(("data_taxonomy", "class_paths", "label_descriptions"))
    described = described or ("answers" if request.source.answers else None)
    if described is not None:
        yield f"{flag_of(described)} is for data in memory, and does not go with --dask."
    if request.chooses_rank:
        yield "--dask takes one --rank and --regularization, not a choice of several."
    for flag, values in (_ON_ALL_CLUSTERS | _ON_CLUSTERS.get(request.model, {})).items():
        if request.given.get(flag) not in (None, *values):
            yield f"{flag_of(flag)} {request.given[flag]} is for data in memory, and does not go with --dask."


_REASONS = (
    _why_not_cluster,
    _why_not_labels,
    _why_not_owners,
    _why_not_texts,
    _why_not_low_rank,
    _why_not_graph,
    _why_not_learning,
    _why_not_threshold,
    _why_not_prior,
    _why_not_decisions,
    _why_not_kernel,
)
