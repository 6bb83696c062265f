"""A classifier together with what turns table rows into its features."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from typing import Any

from labelweave.array_types import Array, RowsByLabels
from labelweave.datasets import TableColumns, TableVectorizer
from labelweave.estimators.base import LabelClassifier
from labelweave.model_files import save_object, storable


@storable("TableModel")
class TableModel:
    """A fitted vectorizer and a fitted classifier, kept in one file.

    vectorizer: fitted; makes features from the columns of a table.
    columns: what the columns of the training table were, so that a later table needs no description; by
        default the vectorizer's columns and no labels.
    Raises ValueError if the classifier takes another number of features than the vectorizer makes.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelweave import MaxMarginClassifier
    >>> from labelweave.datasets import TableVectorizer
    >>> from labelweave.estimators import TableModel
    >>> rows = pd.DataFrame({"text": ["a red rose", "a blue sea"]})
    >>> vectorizer = TableVectorizer(text="text").fit(rows)
    >>> flower = MaxMarginClassifier(C=10).fit(vectorizer.transform(rows), [1, 0])
    >>> TableModel(vectorizer, flower).predict(rows)
    array([1, 0])
    """

    def __init__(
        self, vectorizer: TableVectorizer, classifier: LabelClassifier, columns: TableColumns | None = None
    ) -> None:
        self.vectorizer, self.classifier = vectorizer, classifier
        self.feature_names_ = vectorizer.get_feature_names_out()
        self.columns = columns or TableColumns(
            text=vectorizer.text, categorical=vectorizer.categorical, numeric=vectorizer.numeric
        )
        if classifier.n_features_in_ != len(self.feature_names_):
            raise ValueError(
                f"The classifier takes {classifier.n_features_in_} features but the vectorizer makes "
                f"{len(self.feature_names_)}; fit the classifier to what the vectorizer makes."
            )

    @property
    def label_names_(self) -> Array:
        """The names of the labels, shape (L,), as text."""
        return self.classifier.label_names_

    def __repr__(self) -> str:
        return f"TableModel({len(self.feature_names_)} features, {self.classifier!r})"

    def decision_function(self, frame: Any) -> RowsByLabels:
        """Score every label; a positive score predicts the label.

        frame (n, columns): rows with the columns of the training table.
        """
        return self.classifier.decision_function(self.vectorizer.transform(frame))

    def predict(self, frame: Any) -> Any:
        """Predict the labels of every row, in the form that the training labels had.

        frame (n, columns): rows with the columns of the training table.
        Shapes: result (n, L).
        """
        predicted = self.classifier.predict(self.vectorizer.transform(frame))
        return predicted.set_axis(frame.index) if hasattr(predicted, "columns") else predicted

    def predict_top(self, frame: Any, k: int = 5) -> tuple[Array, Array]:
        """Find the k labels with the highest scores.

        frame (n, columns): rows with the columns of the training table.
        k: how many labels, at most the number there are.
        Shapes: labels (n, k), scores (n, k).
        """
        return self.classifier.predict_top(self.vectorizer.transform(frame), k)

    def save(self, path: str | PathLike[str], *, key: bytes | None = None) -> None:
        """Write the model to one file, without pickle; read it with :func:`labelweave.load`.

        path: the file, replaced only once the new one is complete.
        key: a secret to sign it with; None for a checksum only.
        """
        save_object(path, self, key=key)

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns the vectorizer, the classifier and the columns.
        """
        return {
            "vectorizer": self.vectorizer,
            "classifier": self.classifier,
            "columns": {name: _plain(value) for name, value in asdict(self.columns).items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableModel:
        """Make the model again.

        Returns the model; its arrays are read-only.
        """
        return cls(state["vectorizer"], state["classifier"], TableColumns(**state["columns"]))


def _plain(value: Any) -> Any:
    """Give names as a list of Python strings."""
    return [str(name) for name in value] if isinstance(value, (tuple, list)) else value
