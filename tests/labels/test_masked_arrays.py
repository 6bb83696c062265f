"""Masked entries of a NumPy array are unobserved, or missing, wherever arrays are accepted."""

import numpy as np
import pytest

from labelweave import KernelLogisticClassifier, LabelMatrix, MaxMarginClassifier
from labelweave.metrics import f1_score, ranking_loss

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
Y = (X[:, :2] > 0).astype(int)
MASK = np.zeros(Y.shape, bool)
MASK[:10, 0] = True
GAPS = np.where(MASK, np.nan, Y)


@pytest.mark.parametrize("table", [Y, 2 * Y - 1, Y.astype(bool), Y.astype(float)])
def test_masked_labels_are_unobserved(table):
    hidden = np.ma.array(table, mask=MASK)
    hidden.data[MASK] = hidden.data[~MASK].min()
    np.testing.assert_array_equal(LabelMatrix.from_any(hidden).to_dense(), GAPS)
    fitted = [MaxMarginClassifier().fit(X, y) for y in (hidden, GAPS)]
    np.testing.assert_array_equal(fitted[0].coef_, fitted[1].coef_)
    assert f1_score(hidden, Y, average="micro") == f1_score(GAPS, Y, average="micro")


@pytest.mark.parametrize("names", [["no", "yes"], [3, 7]])
def test_masked_classes_are_not_known(names):
    y = np.ma.array(np.array(names)[Y[:, 0]], mask=MASK[:, 0])
    unknown = [None if masked else name for name, masked in zip(y.data.tolist(), MASK[:, 0], strict=True)]
    fitted = [KernelLogisticClassifier(hyperparameters="fixed").fit(X, part) for part in (y, unknown)]
    assert fitted[0].classes_.tolist() == names
    np.testing.assert_array_equal(fitted[0].predict_proba(X), fitted[1].predict_proba(X))


def test_masked_features_and_scores_are_missing():
    with pytest.raises(ValueError, match="NaN at row 2, column 1"):
        MaxMarginClassifier().fit(np.ma.array(X, mask=np.arange(120).reshape(40, 3) == 7), Y)
    model = MaxMarginClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="NaN at row 0, column 0"):
        model.predict(np.ma.array(X[:2], mask=[[True, False, False], [False] * 3]))
    with pytest.raises(ValueError, match="NaN"):
        ranking_loss(Y, np.ma.array(X[:, :2], mask=MASK))
