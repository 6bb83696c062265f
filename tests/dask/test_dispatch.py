"""X decides where a method runs; what a cluster does not support is refused by one table."""

import numpy as np
import pandas as pd
import pytest
from attacks.small_fits import grouped

import labelweave as lw
from labelweave.dask.models import FAMILIES, refuse_in_memory
from labelweave.estimators.parameters import RULES
from partitioned import chunks, partitions
from refused import refusals

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 4))
Y = (X @ RANDOM.normal(size=(4, 3)) > 0).astype(int)

test_what_makes_no_sense_is_refused = pytest.mark.usefixtures("client")(refusals(__file__))


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_value_that_the_table_does_not_name_is_refused(kind):
    for rule in RULES:
        is_own = kind.__name__ in (rule.models or kind.__name__) and hasattr(kind(), rule.names)
        if rule.fact == "partitions" and is_own and not callable(rule.allowed):
            with pytest.raises(ValueError, match="='other' is for data in memory; with Dask collections"):
                refuse_in_memory(kind(**{rule.names: "other"}))


@pytest.mark.parametrize("collection", [chunks, partitions], ids=["array", "list"])
def test_models_that_were_fitted_in_memory_predict_lazily(client, collection):
    model = lw.BinaryRelevance().fit(X, Y)
    for method in ("predict", "decision_function"):
        lazy = getattr(model, method)(collection(X))
        assert not isinstance(lazy, np.ndarray)
        found = client.gather(client.compute(lazy)) if isinstance(lazy, list) else lazy.compute()
        found = np.concatenate(found) if isinstance(lazy, list) else found
        np.testing.assert_allclose(found, getattr(model, method)(X))
    assert model.score(collection(X), collection(Y)) == pytest.approx(model.score(X, Y))


def test_a_refused_fit_leaves_a_model_as_it_was(client):
    model = lw.MaxMarginClassifier().fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="Partition 1: Y at row"):
        model.fit(chunks(X), chunks(np.where(np.arange(90)[:, None] == 40, 7, Y)))
    assert vars(model) == before


def test_a_fit_forgets_the_last_one_and_keeps_its_parameters(client):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = lw.MaxMarginClassifier(C=0.1, verbose=0).fit(frame, Y)
    parameters = model.get_params()
    assert model.fit(chunks(X), chunks(Y)) is model
    assert not hasattr(model, "feature_names_in_")
    assert model.get_params() == parameters
    np.testing.assert_array_equal(model.coef_, lw.MaxMarginClassifier(C=0.1).fit(X, Y).coef_)


def test_callbacks_are_refused(client):
    class Callback:
        def setup(self, *_):
            """Start."""

    model = lw.MaxMarginClassifier()
    model._skl_callbacks = [Callback()]
    with pytest.raises(ValueError, match="callbacks are for data in memory"):
        model.fit(chunks(X), chunks(Y))


def test_numbers_of_rows_to_learn_from_are_few_without_a_word(client, monkeypatch):
    monkeypatch.setattr("labelweave.dask.models._LEARNING_ROWS", 40)
    given = {"max_learning_iter": 2, "kernel": "linear"}
    model = grouped(lw.KernelLogisticClassifier, **given).fit(chunks(X), chunks(Y))
    few = grouped(lw.KernelLogisticClassifier, **given, learning_rows=40).fit(X, Y)
    assert model.hyperparameters.learning_rows is None
    assert model.hyperparameters_ == pytest.approx(few.hyperparameters_, rel=1e-6)
