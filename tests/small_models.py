"""The small models of tests of all estimators, their data, and fits that tests share."""

import signal
from functools import cache
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from attacks.small_fits import EVERY, NEEDS_NAMES, AtSubtask, data_of, fitted
from sklearn.base import clone

from labelweave import HyperparameterSearch, Taxonomy, config_context

ROWS, FEATURES = 60, 6
QUICK = (
    "margins, coordinates", "margins, rbf", "logistic, fixed", "low rank", "tree of one node", "graph, none",
    "ridge of labels", "tuned", "calibrated", "conformal", "hierarchy", "texts of labels",
    "zero-shot",
)  # fmt: skip
"""Kinds that fast tests look at, one or two of every class."""


def kinds(which=lambda name: True, quick=QUICK):
    """Return the kinds of models of some sort, as cases of a test; all but the fast ones are slow."""
    marks = {name: () if name in quick else pytest.mark.slow for name in EVERY if which(name)}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=mark) for name, mark in marks.items()])


def takes(parameter):
    return lambda name: parameter in EVERY[name].get_params()


def has(method):
    return lambda name: hasattr(EVERY[name], method)


def weighs_entries(name):
    return name != "graph, label sets" and "entry_weight" in signature(EVERY[name].fit).parameters


def in_folds(name):
    """Return whether a kind chooses something on held-out rows, which differ if there are more rows."""
    return (
        name.startswith(("tuned", "calibrated", "conformal", "automatic", "texts", "zero")) or "path" in name
    )


def is_tuned(name):
    return name.startswith("tuned")


def with_one_optimum(name):
    """Return whether a kind's fit depends only on its problem, not on folds or pivots."""
    return not (in_folds(name) or is_tuned(name) or {"pivots", "columns"} & {*name.split()})


def learns(name):
    """Return whether a kind learns something in folds before it is fitted."""
    params = EVERY[name].get_params()
    searches = isinstance(params.get("hyperparameters"), HyperparameterSearch)
    searches |= params.get("hyperparameters") == "learn"
    return bool(searches or params.get("graph__early_stopping") or "scores" in name)


def is_coupled(name):
    """Return whether a kind uses only the labels of its data, without prior knowledge of others."""
    params = EVERY[name].get_params()
    given = [params.get(parameter) for parameter in ("label_covariance", "taxonomy")]
    return any(one is not None for one in given) or name == "zero-shot"


@cache
def data(name):
    """Return the data of a kind, which must not be changed."""
    X, Y = data_of(name, ROWS, FEATURES)
    for part in (X, np.asarray(Y)):
        part.flags.writeable = False
    return X, Y


def labels(name, table):
    return pd.DataFrame(table, columns=list("abcde")[: table.shape[1]]) if name in NEEDS_NAMES else table


def complete(name):
    X, Y = data(name)
    table = labels(name, np.nan_to_num(np.asarray(Y)))
    if name == "hierarchy":
        table = labels(name, Taxonomy.from_any(EVERY[name].taxonomy).with_ancestors(table).to_dense())
    return X, table


def model(name, **parameters):
    return clone(EVERY[name]).set_params(**parameters)


def fit(name, X, y, sample_weight=None, entry_weight=None, **parameters):
    weights = {"sample_weight": sample_weight, "entry_weight": entry_weight}
    return fitted(model(name, **parameters), X, y, **{k: v for k, v in weights.items() if v is not None})


@cache
def fit_once(name):
    """Return the fit of a kind to its data that all tests share and must not change."""
    return fit(name, *data(name))


def scores(fitted_model, X):
    offered = fitted_model.decision_function if hasattr(fitted_model, "decision_function") else None
    return (offered or fitted_model.predict_proba)(X)


def exact(name):
    """Return parameters with which a kind finds the one optimum of its problem.

    Graphs keep their tolerance: row by row they reach a small gap in thousands of passes.
    """
    given = {"prune": "off"} if takes("prune")(name) else {}
    for parameter in EVERY[name].get_params():
        last = parameter.rpartition("__")[2]
        if last == "gamma":
            given[parameter] = 0.1
        elif last == "tol" and not name.startswith("graph"):
            tight = {"logistic, fixed": 1e-13, "low rank, logistic": 1e-9, "margins, weighted": 1e-9}
            given[parameter] = tight.get(name, 1e-7)
        elif last == "max_iter" and not name.startswith("graph"):
            given[parameter] = 3000
    return given


SAME_STEPS = ("ridge of labels", "LIBLINEAR of labels")


def assert_same_scores(name, fitted_model, rows, expected):
    """Check that a fit has the scores of one with the same optimum, within the accuracy of the kind."""
    is_close = name in SAME_STEPS or name.startswith("graph")
    atol = 1e-9 if is_close else 1e-6 if name == "logistic, fixed" else 2e-3
    rtol = 0 if atol < 1e-3 else 1e-3
    np.testing.assert_allclose(scores(fitted_model, rows), expected, rtol=rtol, atol=atol)


def ends(fitted_model):
    return {getattr(fitted_model, end, None) for end in ("status_", "learning_status_", "search_status_")}


def press(at):
    return AtSubtask(at, lambda: signal.raise_signal(signal.SIGINT))


def within(megabytes, model, X, y):
    with config_context(memory_budget=megabytes):
        return model.fit(X, y)
