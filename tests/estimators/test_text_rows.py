"""Rows of texts are refused with an alternative, even if they look like numbers."""

import numpy as np
import pandas as pd
import pytest

from labelweave import BinaryRelevance, KernelLogisticClassifier, LowRankClassifier, MaxMarginClassifier

X = np.array([[1.0, 2], [2, 1], [0, 1], [1, 0]])
Y = [["a"], ["b"], ["a"], ["b"]]
ROWS = {
    "text array": X.astype(str),
    "bytes array": X.astype("S"),
    "lists of text": X.astype(str).tolist(),
    "objects": X.astype(str).astype(object),
    "one text": np.array([[1.0, "2"], [2, 1], [0, 1], [1, 0]], object),
    "frame": pd.DataFrame(X.astype(str)),
    "list of texts": ["a red rose", "a sea", "red", "blue"],
    "array of texts": np.array(["a red rose", "a sea", "red", "blue"]),
    "series of texts": pd.Series(["a red rose", "a sea", "red", "blue"]),
    "frame of texts": pd.DataFrame({"t": ["a red rose", "a sea", "red", "blue"]}),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize(
    "model", [MaxMarginClassifier(), KernelLogisticClassifier(), LowRankClassifier(), BinaryRelevance()]
)
def test_texts_are_no_numbers(kind, model):
    with pytest.raises(ValueError, match=r"which is not a number; use TableModel for frames"):
        model.fit(ROWS[kind], Y)


def test_numbers_of_all_kinds_are_read_as_before():
    fitted = MaxMarginClassifier().fit(X, Y)
    for same in (X.tolist(), X.astype(object), pd.DataFrame(X), X.astype(np.float32), X.astype(int)):
        np.testing.assert_allclose(MaxMarginClassifier().fit(same, Y).coef_, fitted.coef_, rtol=1e-5)
    with pytest.raises(ValueError, match=r"the text '1\.0'"):
        fitted.predict(X.astype(str))
