"""Values of steps that no model file may hold, each refused when it is read."""

import importlib.metadata

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction import text
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from labelweave.model_files import ModelFileError, model_file, pipelines
from labelweave.model_files.pipelines import _kept_value
from labelweave.model_files.state import decode, encode, to_json
from labelweave.model_files.storable import is_registered
from labelweave.model_files.transformer_kinds import _mapping, put_categories
from labelweave.model_files.trial_rows import check_width, trial_rows, try_out

CELLS = np.array([["a", "x"], ["b", "y"], ["c", "x"]], object)


def test_what_is_plain_comes_back():
    arrays, objects = {}, np.array(["b", 2, np.nan, None], object)
    value = {"a": objects, "b": slice(1, None), "c": [np.dtype("<f4"), np.float32, object]}
    found = decode(encode(value, arrays), arrays)
    assert found.pop("a").tolist()[:2] == ["b", 2]
    assert found == {"b": slice(1, None), "c": [np.dtype("<f4"), np.float32, object]}
    assert _kept_value(np.random.RandomState(0), "a step") is None
    with pytest.raises(TypeError, match="a step is a object, which model files cannot store"):
        _kept_value(object(), "a step")
    assert _mapping(None, 3) is None


def test_categories_are_one_array_a_feature_in_order():
    encoder = OneHotEncoder(min_frequency=2).fit(CELLS)
    whole, rare = list(encoder.categories_), [np.array([0, 1, 2]), np.array([1])]
    for categories, infrequent, words in (
        (tuple(whole), rare, "does not have one array of categories per feature"),
        (whole[:1], rare, "does not have one array of categories per feature"),
        ([whole[0][[0, 0, 1]], whole[1]], rare, "the categories of feature 0 are not distinct and sorted"),
        (whole, rare[:1], "does not list the infrequent categories of each feature"),
    ):
        with pytest.raises(ValueError, match=words):
            put_categories(encoder, categories, infrequent)
    expected = encoder.transform(CELLS).toarray()
    put_categories(encoder, whole, encoder._infrequent_indices)
    np.testing.assert_array_equal(encoder.transform(CELLS).toarray(), expected)
    ordinal = OrdinalEncoder().fit([[1.0], [np.nan]])
    put_categories(ordinal, ordinal.categories_, None)
    assert ordinal._missing_indices == {0: 1}


def test_columns_of_parts_are_all_there():
    parts = ColumnTransformer([("a", StandardScaler(), [0]), ("b", "passthrough", [1])])
    step = parts.fit(np.eye(3)[:, :2])
    good = {
        "places": {"a": [0], "b": [1]}, "outputs": {"a": (0, 1), "b": (1, 2), "remainder": (0, 0)},
        "is_sparse": False,
    }  # fmt: skip
    for changed, words in (
        ({"places": {"a": [0], "b": [0]}}, "do not cover the 2 input columns"),
        ({"places": {"a": [0]}}, "its columns do not cover the 2 input columns"),
        ({"outputs": {"a": (0, 1)}}, "does not list the features of its steps"),
        ({"places": {"a": [0, 1], "b": [1]}}, "its step 'a' does not take its 2 columns"),
    ):
        with pytest.raises(ModelFileError, match=words):
            pipelines._put_columns(step, good | changed)


def test_steps_are_tried_with_rows_that_they_take():
    assert trial_rows(make_pipeline("passthrough")) is None
    assert trial_rows(make_pipeline("passthrough", PCA(1).fit(np.eye(3)))).shape == (2, 3)
    assert trial_rows(text.HashingVectorizer()) == ["a word", ""]
    try_out(make_pipeline(StandardScaler().fit(np.eye(3)), PCA(1).fit(np.eye(3))))

    class Halves(StandardScaler):
        def transform(self, X, copy=None):
            return X[:1]

    wrong = make_pipeline(StandardScaler().fit(np.eye(3)), Halves().fit(np.eye(3)))
    with pytest.raises(ModelFileError, match="its Halves does not return one row per input row"):
        try_out(wrong)
    hashed = ColumnTransformer([("a", text.HashingVectorizer(n_features=2**27), 0)], sparse_threshold=0.0)
    hashed.transformers_, hashed.sparse_output_ = hashed.transformers, False
    with pytest.raises(ModelFileError, match="returns 134217728 dense features"):
        check_width(hashed)


def test_states_and_versions(monkeypatch):
    with pytest.raises(ValueError, match="is an integer of 100001 bits"):
        to_json({"a": 2**100_000}, "state")
    assert not is_registered(object())

    def unknown(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(model_file.importlib.metadata, "version", unknown)
    assert set(model_file._versions().values()) - {model_file._versions()["python"]} == {"unknown"}
