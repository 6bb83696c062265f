"""Files to edit: pipelines of all steps and of forests, and checkpoints of small fits."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn import feature_selection, impute, preprocessing
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction import DictVectorizer, FeatureHasher, text
from sklearn.pipeline import make_pipeline, make_union

import labelweave
from attacks.small_fits import CHECKPOINTED, data_of, fitted
from labelweave import AutoLabelClassifier, LowRankClassifier, MaxMarginClassifier, TunedThresholdClassifier
from labelweave.datasets import TableVectorizer
from labelweave.estimators.journal import Journal
from labelweave.features import ForestKernel
from labelweave.model_files.trial_rows import trial_rows

_N = 24
_NUMBERS = np.random.default_rng(1).integers(0, 5, (_N, 4)).astype(float)
_HOLES = np.where(np.arange(4 * _N).reshape(_N, 4) % 7 == 0, np.nan, _NUMBERS)
_WORDS = [" ".join(["red", "blue", "sea", "rose"][k] for k in row[:3].astype(int) % 4) for row in _NUMBERS]
_CELLS = np.array([[f"c{row[0] % 3:.0f}", row[1]] for row in _NUMBERS], object)
_FRAME = pd.DataFrame({"title": _WORDS, "kind": _CELLS[:, 0], "size": _HOLES[:, 0], "weight": _NUMBERS[:, 1]})
_Y = (_NUMBERS[:, :3] > 1.5).astype(int)


def _columns() -> ColumnTransformer:
    numbers = make_pipeline(impute.SimpleImputer(strategy="median"), preprocessing.StandardScaler())
    return ColumnTransformer([
        ("words", text.TfidfVectorizer(), "title"),
        ("kinds", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["kind"]),
        ("numbers", numbers, ["size", "weight"]),
    ])  # fmt: skip


def _unfitted() -> dict[str, tuple[Any, Any]]:
    """Return steps of every kind, and forests, with the rows that they are fitted to."""

    def before(*steps: Any) -> Any:
        return make_pipeline(*steps, MaxMarginClassifier(C=2.0))

    moments = (preprocessing.RobustScaler(), preprocessing.PowerTransformer(), preprocessing.MinMaxScaler())
    nearest = impute.KNNImputer(n_neighbors=2, add_indicator=True)
    documents = [words.split() for words in _WORDS]
    choices = [
        feature_selection.SelectKBest(feature_selection.f_classif, k=3),
        feature_selection.SelectPercentile(feature_selection.f_classif, percentile=60),
        feature_selection.SelectFpr(feature_selection.f_classif, alpha=0.9),
        feature_selection.SelectFdr(feature_selection.f_classif, alpha=0.9),
        feature_selection.SelectFwe(feature_selection.f_classif, alpha=0.9),
        feature_selection.GenericUnivariateSelect(feature_selection.f_classif, mode="fpr", param=0.9),
    ]
    ranks = preprocessing.QuantileTransformer(n_quantiles=9, output_distribution="normal")
    codes = preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    rare = preprocessing.OneHotEncoder(min_frequency=9, handle_unknown="infrequent_if_exist")
    counts = text.CountVectorizer(ngram_range=(1, 2))
    sparse = (text.TfidfTransformer(), preprocessing.MaxAbsScaler(), TruncatedSVD(2))
    return {
        "frame": (before(_columns()), _FRAME),
        "table": (make_pipeline(TableVectorizer("title", "kind", ["weight"]), LowRankClassifier(2)), _FRAME),
        "moments": (before(preprocessing.StandardScaler(), *moments), _NUMBERS),
        "axes": (make_pipeline(ranks, PCA(3, whiten=True), LowRankClassifier(2)), _NUMBERS),
        "holes": (before(impute.SimpleImputer(add_indicator=True)), _HOLES),
        "neighbors": (before(nearest), _HOLES),
        "missing": (before(make_union(impute.MissingIndicator(), impute.SimpleImputer())), _HOLES),
        "choices": (before(feature_selection.VarianceThreshold(0.1), make_union(*choices)), _NUMBERS),
        "rows": (before(preprocessing.Normalizer(), preprocessing.Binarizer(threshold=0.2)), _NUMBERS),
        "codes": (before(make_union(codes, rare)), _CELLS),
        "words": (before(counts, *sparse), _WORDS),
        "hashed": (before(text.HashingVectorizer(n_features=32)), _WORDS),
        "hashed names": (before(FeatureHasher(16, input_type="string")), documents),
        "names": (before(DictVectorizer()), [{"a": len(d), "b": d[0]} for d in documents]),
        "parts": (
            before(make_column_transformer((PCA(1), [0, 1]), remainder="passthrough")), _NUMBERS,
        ),
        "forest kernel": (MaxMarginClassifier(kernel=ForestKernel(n_trees=4)), _NUMBERS),
        "chosen": (AutoLabelClassifier(random_state=0), _NUMBERS),
        "decided": (TunedThresholdClassifier(before(preprocessing.StandardScaler())), _NUMBERS),
    }  # fmt: skip


def pipeline_files() -> dict[str, bytes]:
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (pipeline, rows) in _unfitted().items():
            y = _Y[:, 0] if name == "choices" else _Y  # scikit-learn's tests use one column
            path = Path(folder) / "pipeline.lw"
            labelweave.save(pipeline.fit(rows, y), path)
            found[f"pipeline, {name}"] = path.read_bytes()
    return found


def rows_for_pipeline(model: Any) -> Any:
    """Make three rows: those with which a file was tested, or others with such numbers."""
    rows = trial_rows(model)
    if rows is None:
        return None
    if isinstance(rows, list):
        return [*rows, rows[0]]
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[[0, 1, 0]]
    if sp.issparse(rows):
        return sp.csr_array((3, rows.shape[1]))
    if rows.dtype == object or np.isnan(rows).any():
        return rows[[0, 1, 0]]
    return np.arange(3 * rows.shape[1]).reshape(3, -1) * 7 % 5 / 4.0


KINDS = (
    "margins, coordinates", "margins, rbf", "margins, rbf blocks", "margins, rbf pairs", "logistic, fixed",
    "logistic, learned", "low rank", "low rank, path", "graph, learned", "graph, given", "graph, proximal",
)  # fmt: skip
"""One for every kind of state."""
_ROWS, _FEATURES = 40, 4
_AT = (1, 4)  # checks after which files are stored
_CHECKS = 12  # and the last of the first ones
_PASSES = 50  # so that a fit to the last one does not hang
_MARK = "checkpoint, "


def checkpoint_files() -> dict[str, bytes]:
    found = {}
    for name in KINDS:
        written = _written(name)
        for at in sorted({*_AT, len(written)}):
            if at <= len(written):
                found[f"{_MARK}{name}, {at}"] = written[at - 1]
    return found


def is_checkpoint(name: str) -> bool:
    return name.startswith(_MARK)


def _written(name: str) -> list[bytes]:
    written: list[bytes] = []

    def note(self: Journal, stage: str, state: Any) -> None:
        self.states[self.within + stage] = state
        if len(written) < _CHECKS:
            self.write()
            written.append(self.path.read_bytes())

    usual, Journal.note = Journal.note, note
    try:
        with tempfile.TemporaryDirectory() as folder:
            fit_from(f"{_MARK}{name}, 0", Path(folder) / "fit.lwc")
    finally:
        Journal.note = usual
    return written


def fit_from(name: str, path: Path) -> Any:
    kind = name.removeprefix(_MARK).rpartition(",")[0]
    X, Y = data_of(kind, _ROWS, _FEATURES)
    model = clone(CHECKPOINTED[kind]).set_params(checkpoint=path)
    if kind.startswith("graph"):
        model.set_params(max_iter=_PASSES)
    return fitted(model, X, Y)
