"""What a prediction does anew for every row, and what is made once for a model."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import labelweave
from labelweave import AutoLabelClassifier, MaxMarginClassifier
from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(40, 5))
Y = (X @ DRAW.normal(size=(5, 3)) + DRAW.normal(size=(40, 3)) > 0).astype(int)

KERNEL_MODELS = {
    "one kernel": MaxMarginClassifier(kernel="rbf"),
    "two kernels": MaxMarginClassifier(kernel=["linear", "rbf"]),
    "sum": MaxMarginClassifier(kernel=LinearKernel() + RBFKernel()),
}


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kind", KERNEL_MODELS)
def test_support_rows_are_checked_once(kind, make, monkeypatch, tmp_path):
    fitted = KERNEL_MODELS[kind].fit(make(X), Y)
    fitted.save(tmp_path / "model.lw")
    made, of_model = [], FeatureMatrix.of_model.__func__
    monkeypatch.setattr(
        FeatureMatrix, "of_model", classmethod(lambda cls, rows: made.append(rows) or of_model(cls, rows))
    )
    model = labelweave.load(tmp_path / "model.lw")
    found = [model.decision_function(make(X[:1])) for _ in range(3)]
    assert len(made) == len(model.scorer_.terms)
    for one in found:
        assert_array_equal(one, fitted.decision_function(make(X[:1])))


@pytest.mark.parametrize("kind", KERNEL_MODELS)
def test_what_is_made_once_is_in_no_pickle(kind):
    model = KERNEL_MODELS[kind].fit(X, Y)
    before = pickle.dumps(model.scorer_)
    scores = model.decision_function(X[:1])
    assert pickle.dumps(model.scorer_) == before
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X[:1]), scores)


@pytest.mark.parametrize("kind", KERNEL_MODELS)
def test_rows_in_the_memory_of_the_support_have_the_scores_of_copies(kind):
    model = KERNEL_MODELS[kind].fit(X, Y)
    own = model.scorer_.support_vectors
    # BLAS may take another routine for a table times its own transpose
    assert_allclose(model.decision_function(own), model.decision_function(own.copy()), rtol=1e-11, atol=1e-13)


def test_members_inside_a_model_do_not_read_rows_again(monkeypatch):
    sparse = sp.csr_array(np.where(X > 0.3, X, 0.0))
    model = AutoLabelClassifier(members=["max-margin", "rbf"], time_budget=5).fit(sparse, Y)
    assert len(model.scorer_.members) == 2
    scores, read, check = model.decision_function(sparse[:3]), [], FeatureMatrix.__init__
    monkeypatch.setattr(FeatureMatrix, "__init__", lambda *a, **b: read.append(a) or check(*a, **b))
    assert_array_equal(model.decision_function(sparse[:3]), scores)
    assert sum(sp.issparse(rows) for _, rows, *_ in read) == 1
    with pytest.raises(ValueError, match="infinity at row 1"):
        model.predict(sp.csr_array(np.where(np.outer([0, 1, 0], np.ones(5)) > 0, np.inf, 0.0)))
