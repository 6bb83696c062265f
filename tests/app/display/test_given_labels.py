"""Input of displays: classes as columns, predictions with true labels, scores with thresholds."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import LabelMatrix
from labelweave.app.display.given_labels import model_truth, one_hot, predicted_labels
from labelweave.app.display.threshold_curve_display import scores_and_thresholds
from pictures import Fitted

X = np.random.default_rng(0).normal(size=(40, 2))


class Probable(Fitted):
    def predict_proba(self, X):
        return np.clip(np.asarray(X)[:, :2], 0, 1)


@pytest.mark.parametrize(
    ("model", "response", "thresholds"),
    [
        (Fitted(thresholds=[0.25, 0.5]), "auto", [0.25, 0.5]),
        (Fitted(threshold=0.25), "auto", [0.25, 0.25]),
        (Fitted(k=2), "auto", None),
        (Fitted(), "auto", [0.0, 0.0]),
        (Probable(thresholds=[0.25, 0.5]), "auto", [0.25, 0.5]),
        (Probable(thresholds=[0.25, 0.5]), "decision_function", None),
        (Probable(), "predict_proba", [0.5, 0.5]),
    ],
)
def test_thresholds_are_on_the_scale_of_the_scores(model, response, thresholds):
    scores, found = scores_and_thresholds(model, X, 2, response)
    assert (found is None) == (thresholds is None)
    if thresholds is not None:
        np.testing.assert_array_equal(found, thresholds)
    shift = 0.25 if type(model) is Fitted and thresholds and thresholds[0] else 0.0
    expected = np.clip(X, 0, 1) if type(model) is Probable and response != "decision_function" else X
    np.testing.assert_allclose(scores, expected + shift)


def test_classes_become_columns():
    classes = ["a", "b", "c"]
    labels = one_hot(np.array(["b", None, "a"], object), classes, "y")
    np.testing.assert_array_equal(labels.to_signs(), [[-1, 1, -1], [0, 0, 0], [1, -1, -1]])
    assert one_hot(np.array(["a", "b"]), ["a", "b"], "y").n_labels == 1
    with pytest.raises(ValueError, match=r"y at row 1 is 'd', which is none of the 3 classes \(2 such rows"):
        one_hot(np.array(["a", "d", "e"], object), classes, "y")


def test_predictions_are_in_the_columns_of_the_truth():
    table = sp.csr_array(np.eye(2))
    truth = LabelMatrix.from_any(np.eye(2))
    assert predicted_labels(Fitted(answers=table), X, truth) is table
    one = LabelMatrix.from_any([[1], [0]])
    np.testing.assert_array_equal(
        predicted_labels(Fitted(answers=[1, 0], classes=[0, 1, 2]), X, one), [[1], [0]]
    )
    found = predicted_labels(Fitted(answers=["b", "a"], classes=np.array(["a", "b"])), X, one)
    np.testing.assert_array_equal(found.to_signs(), [[1], [-1]])
    model = Fitted(classes=np.array([0, 1]), label_names=["a", "b"])
    assert list(model_truth(model, np.eye(2)).names) == ["a", "b"]
    with pytest.raises(ValueError, match="in another order than the Fitted"):
        model_truth(model, LabelMatrix.from_any(np.eye(2), ["b", "a"]))
