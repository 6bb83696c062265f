"""The number of pivots of a low-rank kernel matrix."""

import numpy as np
import pytest

import labelweave
from labelweave import KernelLogisticClassifier, LowRankClassifier, LowRankClassifierCV

MODELS = {
    "logistic": KernelLogisticClassifier(hyperparameters="fixed", kernel_rank=12),
    "low rank": LowRankClassifier(2, kernel="rbf", gamma=0.5, kernel_rank=12),
    "low rank, chosen": LowRankClassifierCV((1, 2), [0.1], kernel="rbf", cv=3, kernel_rank=12),
}


@pytest.mark.parametrize("name", MODELS)
def test_so_many_rows_are_kept_by_the_model_and_its_file(name, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    model = MODELS[name].fit(X, (X @ random.normal(size=(3, 4)) > 0).astype(int))
    assert len(model.support_) == 12
    model.save(tmp_path / "m.lw")
    loaded = labelweave.load(tmp_path / "m.lw")
    assert loaded.kernel_rank == 12
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
