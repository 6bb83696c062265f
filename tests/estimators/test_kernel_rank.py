"""The number of pivots of a low-rank kernel matrix, by its name and by that of earlier versions."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import labelweave
from labelweave import KernelLogisticClassifier, LowRankClassifier, LowRankClassifierCV

WRITTEN = Path(__file__).parents[1] / "model_files" / "written_by_e10e487"
MAKERS = {
    "logistic": lambda **names: KernelLogisticClassifier(hyperparameters="fixed", **names),
    "low rank": lambda **names: LowRankClassifier(2, kernel="rbf", gamma=0.5, **names),
    "low rank, chosen": lambda **names: LowRankClassifierCV((1, 2), [0.1], kernel="rbf", cv=3, **names),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    return X, (X @ random.normal(size=(3, 4)) > 0).astype(int)


@makers
def test_the_earlier_name_means_the_same_and_warns(make, problem, tmp_path):
    X, Y = problem
    model = make(low_rank=12)
    assert clone(model).get_params()["low_rank"] == 12
    with pytest.warns(FutureWarning, match="low_rank is now called kernel_rank.*give kernel_rank=12") as met:
        model.fit(X, Y)
    assert [warning.filename for warning in met] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        renamed = make(kernel_rank=12).fit(X, Y)
        model.save(tmp_path / "m.lw")
        loaded = labelweave.load(tmp_path / "m.lw")
        loaded.fit(X, Y)
    assert (loaded.kernel_rank, loaded.low_rank) == (12, "deprecated")
    assert len(renamed.support_) == 12
    for other in (model, loaded):
        np.testing.assert_array_equal(other.decision_function(X), renamed.decision_function(X))


@makers
def test_both_names_at_once_are_refused(make, problem):
    with pytest.raises(ValueError, match="kernel_rank and low_rank are two names of one parameter"):
        make(kernel_rank=12, low_rank=12).fit(*problem)
    with pytest.raises(ValueError, match=r"The 'low_rank' parameter .* must be an int"):
        make(low_rank="many").fit(*problem)


@pytest.mark.parametrize("name", ["logistic_low_rank", "low_rank_nystrom"])
def test_earlier_files_have_the_new_name(name):
    model = labelweave.load(WRITTEN / f"{name}.lw")
    assert (model.kernel_rank, model.low_rank) == (8, "deprecated")
