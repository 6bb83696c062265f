"""Which flags belong to which model, and what they are called in its class."""

from __future__ import annotations

import click
from click.core import ParameterSource

from labelweave.cli.data_options import Options
from labelweave.cli.messages import flag_of

__all__ = ["MODELS", "check_model_flags", "model_parameters"]

_MARGIN, _LOGISTIC, _LOW_RANK = "max-margin", "kernel-logistic", "low-rank"
_GRAPH = "label-graph"
_RELEVANCE, _PLST, _CPLST, _WSABIE = "binary-relevance", "plst", "cplst", "wsabie"
MODELS = (_MARGIN, _LOGISTIC, _LOW_RANK, _GRAPH, _RELEVANCE, _PLST, _CPLST, _WSABIE)

_KERNEL_FLAGS = ("kernel", "gamma", "degree", "coef0", "memory_budget")
_SOLVER_FLAGS = ("solver", "factorization")
_RELATIONS = ("taxonomy", "data_taxonomy", "covariance", "covariance_from", "signatures", "shrink")
_FLAGS_OF: dict[tuple[str, ...], tuple[str, ...]] = {
    (_MARGIN,): ("C", *_SOLVER_FLAGS),
    (_MARGIN, _GRAPH): ("false_negative_cost", "false_positive_cost"),
    (_GRAPH,): (
        *("graph", "cliques_per_round", "max_rounds", "graph_tol", "clique_size", "early_stopping"),
        "refit",
        *("inference", "exact_width", "max_nodes"),
    ),
    (_LOW_RANK, _GRAPH): ("intercept_scaling",),
    (_LOGISTIC,): (
        *("scale", "intercept_variance", "tie", "decision", "class_paths", "learning_blocks", "coupling"),
    ),
    (_LOW_RANK,): (
        *("penalty", "negative_weight", "start"),
        *("ranks", "regularizations", "scoring", "rule"),
    ),
    (_MARGIN, _LOGISTIC): _RELATIONS,
    (_MARGIN, _LOW_RANK): ("precision",),
    (_LOGISTIC, _LOW_RANK): ("low_rank", "hyperparameters", "cv", "learning_rows", "max_learning_iter"),
    (_MARGIN, _LOGISTIC, _LOW_RANK): (*_KERNEL_FLAGS, "threshold"),
    (_MARGIN, _LOGISTIC, _LOW_RANK, _GRAPH): ("validation_fraction",),
    (_LOW_RANK, _PLST, _CPLST, _WSABIE): ("rank",),
    (_LOW_RANK, _RELEVANCE): ("loss",),
    (_LOW_RANK, _GRAPH, _RELEVANCE, _PLST, _CPLST): ("regularization",),
    (_MARGIN, _LOGISTIC, _LOW_RANK, _GRAPH, _RELEVANCE): ("tol", "jobs"),
    (_MARGIN, _LOGISTIC, _LOW_RANK, _GRAPH, _RELEVANCE, _WSABIE): ("max_iter",),
    (_MARGIN, _LOGISTIC, _LOW_RANK, _GRAPH, _WSABIE): ("seed",),
    (_MARGIN, _LOW_RANK, _GRAPH, _RELEVANCE, _PLST, _CPLST, _WSABIE): ("no_intercept",),
}
_MODELS_OF = {flag: models for models, flags in _FLAGS_OF.items() for flag in flags}
_ELSEWHERE = (
    *_KERNEL_FLAGS,
    *_SOLVER_FLAGS,
    *_RELATIONS,
    "precision",
    "class_paths",
    "graph",
    "no_intercept",
)
_NAMES = {"jobs": "n_jobs", "seed": "random_state"}
_CENTERED = (_PLST, _CPLST)  # their intercept is made of means


def check_model_flags(context: click.Context, model: str, used: tuple[str, ...] = ()) -> None:
    """Refuse flags of other models.

    context: knows which flags were given.
    used: flags that others than models use.
    Raises click.UsageError if there are any.
    """
    others = (name for name, models in _MODELS_OF.items() if model not in models and name not in used)
    wrong = next((name for name in others if _is_given(context, name)), None)
    if wrong is not None:
        *first, last = _MODELS_OF[wrong]
        those = f"{', '.join(first)} or {last}" if first else last
        raise click.UsageError(f"{flag_of(wrong)} goes with --model {those}, not with {model}.")


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)


def model_parameters(options: Options) -> Options:
    """Give the flags of the chosen model in the words of its class, without those of kernels and relations.

    options: the values of all flags.
    """
    model = options["model"]
    names = _NAMES | ({"max_iter": "n_epochs"} if model == _WSABIE else {})
    own = [name for name, models in _MODELS_OF.items() if model in models and name not in _ELSEWHERE]
    given = {names.get(name, name): options[name] for name in own if options[name] is not None}
    if model not in _MODELS_OF["no_intercept"]:
        return given
    return given | {"center" if model in _CENTERED else "fit_intercept": not options["no_intercept"]}
