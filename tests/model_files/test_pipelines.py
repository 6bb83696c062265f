"""Pipelines are saved and loaded if all their steps are of known kinds."""

import contextlib
import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import feature_selection, impute, preprocessing
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer, FeatureHasher, text
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline, make_union

import labelweave as lw
from labelweave.datasets import TableVectorizer
from labelweave.model_files import ModelFileError, decode, encode
from labelweave.model_files.pipelines import KeptStep
from labelweave.model_files.transformer_kinds import FITTED

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(30, 4))
HOLES = np.where(RANDOM.random((30, 4)) < 0.2, np.nan, X)
OBJECTS = np.array([[np.int64(row % 3), np.str_("ab"[row % 2])] for row in range(30)], object)
COUNTS = sp.csr_array(RANDOM.poisson(1.0, (30, 4)))
WORDS = [" ".join(RANDOM.choice(["red", "blue", "sea", "rose"], 4)) for _ in range(30)]
CELLS = np.array([[f"c{row % 3}", None if row % 4 else "x", float(row % 5)] for row in range(30)], object)
Y = (X[:, :2] > 0).astype(int)

CASES = [
    *[(step, HOLES) for step in (
        preprocessing.StandardScaler(), preprocessing.StandardScaler(with_mean=False, with_std=False),
        preprocessing.MinMaxScaler((-1, 2)), preprocessing.MaxAbsScaler(), preprocessing.RobustScaler(),
        preprocessing.QuantileTransformer(n_quantiles=10, output_distribution="normal", random_state=0),
        preprocessing.PowerTransformer(), preprocessing.PowerTransformer(standardize=False),
        impute.SimpleImputer(add_indicator=True), impute.KNNImputer(n_neighbors=2), impute.MissingIndicator(),
        impute.SimpleImputer(strategy="constant", fill_value=-1.0),
    )],
    (preprocessing.Normalizer("l1"), X), (preprocessing.Binarizer(threshold=0.5), X),
    (preprocessing.StandardScaler(with_mean=False), COUNTS), (preprocessing.MaxAbsScaler(), COUNTS),
    (impute.SimpleImputer(strategy="most_frequent", missing_values=None), CELLS[:, :2]),
    (preprocessing.OneHotEncoder(), CELLS), (preprocessing.OneHotEncoder(drop="first"), CELLS),
    (preprocessing.OneHotEncoder(min_frequency=12, handle_unknown="infrequent_if_exist"), CELLS),
    (preprocessing.OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore"), CELLS[:, :1]),
    (preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), CELLS),
    (preprocessing.OrdinalEncoder(encoded_missing_value=-2, max_categories=2), HOLES.round()),
    (feature_selection.VarianceThreshold(0.5), X), (feature_selection.SelectKBest(k=2), X),
    (feature_selection.SelectPercentile(feature_selection.f_classif, percentile=50), X),
    (feature_selection.SelectFpr(alpha=0.9), X), (feature_selection.SelectFdr(alpha=0.9), X),
    (feature_selection.SelectFwe(alpha=0.9), X), (feature_selection.GenericUnivariateSelect(param=50), X),
    (feature_selection.SelectKBest(feature_selection.mutual_info_classif, k=2), X),
    (text.CountVectorizer(ngram_range=(1, 2)), WORDS),
    (text.CountVectorizer(vocabulary=["sea", "red"]), WORDS),
    (text.TfidfVectorizer(sublinear_tf=True, stop_words=["red"], dtype=np.float32), WORDS),
    (text.TfidfVectorizer(use_idf=False), WORDS), (text.TfidfTransformer(), COUNTS),
    (text.TfidfTransformer(use_idf=False), COUNTS), (text.HashingVectorizer(n_features=16), WORDS),
    (FeatureHasher(8, input_type="string"), [words.split() for words in WORDS]),
    (DictVectorizer(), [{"a": 1, "b": words} for words in WORDS]),
    (PCA(2, whiten=True), X), (TruncatedSVD(2), COUNTS.astype(float)),
    (make_pipeline(preprocessing.StandardScaler(), "passthrough", PCA(2)), X),
    (make_union(preprocessing.StandardScaler(), TruncatedSVD(2), "drop"), X),
    (make_column_transformer((preprocessing.StandardScaler(), [0, 2]), ("passthrough", slice(1, 2))), X),
    (ColumnTransformer([("a", "drop", [0])], remainder=preprocessing.MinMaxScaler()), X),
    (make_column_transformer((PCA(1), [True, False, True, False]), remainder="passthrough"), X),
]  # fmt: skip


def _dense(found):
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def _again(model, tmp_path):
    lw.save(model, tmp_path / "m.lw")
    return lw.load(tmp_path / "m.lw")


@pytest.mark.parametrize(("step", "rows"), CASES, ids=lambda part: type(part).__name__)
def test_every_kind_comes_back(step, rows, tmp_path):
    step.fit(rows, Y[:, 0])
    again = _again(step, tmp_path)
    assert type(again) is type(step)
    assert repr(again) == repr(step)
    np.testing.assert_array_equal(_dense(again.transform(rows)), _dense(step.transform(rows)))
    if hasattr(step, "get_feature_names_out"):
        assert again.get_feature_names_out().tolist() == step.get_feature_names_out().tolist()
    lw.save(again, tmp_path / "again.lw")
    assert (tmp_path / "again.lw").read_bytes() == (tmp_path / "m.lw").read_bytes()


def test_every_kind_is_tried():
    assert {type(step) for step, _ in CASES} >= set(FITTED)


FRAME = pd.DataFrame(
    {"title": WORDS, "kind": CELLS[:, 0], "size": HOLES[:, 0], "weight": X[:, 1], "id": range(30)}
)


def _columns():
    numbers = make_pipeline(impute.SimpleImputer(strategy="median"), preprocessing.StandardScaler())
    return ColumnTransformer([
        ("words", text.TfidfVectorizer(), "title"),
        ("kinds", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["kind"]),
        ("numbers", numbers, make_column_selector(dtype_include="float")),
    ])  # fmt: skip


def test_the_usual_pipeline_over_a_frame(tmp_path):
    pipeline = Pipeline([("columns", _columns()), ("labels", lw.MaxMarginClassifier(C=10))])
    pipeline.fit(FRAME, [["a", "b"] if row % 2 else ["b"] for row in range(30)])
    again = _again(pipeline, tmp_path)
    np.testing.assert_array_equal(again.decision_function(FRAME), pipeline.decision_function(FRAME))
    assert again.predict(FRAME[:3]).tolist() == pipeline.predict(FRAME[:3]).tolist()
    moved = FRAME[FRAME.columns[::-1]]  # columns are known by name
    np.testing.assert_array_equal(again.decision_function(moved), pipeline.decision_function(FRAME))
    assert again[:-1].get_feature_names_out().tolist() == pipeline[:-1].get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="missing"):
        again.predict(FRAME.drop(columns="kind"))
    refitted = again.fit(FRAME, Y)
    np.testing.assert_array_equal(
        refitted.decision_function(FRAME), pipeline.fit(FRAME, Y).decision_function(FRAME)
    )


def test_frames_between_steps(tmp_path):
    pipeline = make_pipeline(
        make_column_transformer(("passthrough", ["weight"]), remainder="drop"), preprocessing.StandardScaler()
    ).set_output(transform="pandas")
    again = _again(pipeline.fit(FRAME), tmp_path)
    pd.testing.assert_frame_equal(again.transform(FRAME), pipeline.transform(FRAME))


def test_a_pipeline_inside_what_decides(reloaded):
    inner = make_pipeline(preprocessing.StandardScaler(), lw.MaxMarginClassifier())
    model = lw.TunedThresholdClassifier(inner).fit(X, Y)
    np.testing.assert_array_equal(reloaded(model).predict(X), model.predict(X))


def test_our_own_steps_and_models(tmp_path):
    pipeline = make_pipeline(TableVectorizer("title", "kind"), lw.LowRankClassifier(rank=2)).fit(FRAME, Y)
    np.testing.assert_array_equal(_again(pipeline, tmp_path).predict(FRAME), pipeline.predict(FRAME))
    model = lw.MaxMarginClassifier().fit(X, Y)
    np.testing.assert_array_equal(_again(model, tmp_path).predict(X), model.predict(X))
    lw.save(pipeline, tmp_path / "signed.lw", key=b"sixteen bytes or more")
    with pytest.raises(ModelFileError):
        lw.load(tmp_path / "signed.lw", key=b"another key of sixteen bytes")


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            make_pipeline(RBFSampler(), lw.MaxMarginClassifier()),
            "Pipeline's rbfsampler is a RBFSampler, which model files cannot",
        ),
        (make_pipeline(RandomForestClassifier(1)), "randomforestclassifier is a RandomForestClassifier"),
        (make_union(preprocessing.SplineTransformer()), "splinetransformer is a SplineTransformer"),
        (make_pipeline(preprocessing.FunctionTransformer(np.abs)), "FunctionTransformer"),
        (make_column_transformer((RBFSampler(), [0])), "ColumnTransformer's rbfsampler is a RBFS"),
        (
            make_pipeline(feature_selection.SelectKBest(lambda X, y: np.arange(4.0), k=2)),
            "The parameter score_func of Pipeline's selectkbest is a function",
        ),
    ],
)
def test_what_is_not_known_is_refused_by_name(pipeline, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        lw.save(pipeline.fit(abs(X), Y[:, 0]), tmp_path / "m.lw")
    assert not (tmp_path / "m.lw").exists()


def test_functions_in_vectorizers_files_and_what_is_not_fitted_are_refused(tmp_path):
    words = make_pipeline(text.CountVectorizer(tokenizer=str.split, token_pattern=None)).fit(WORDS)
    with pytest.raises(TypeError, match="The parameter tokenizer of Pipeline's countvectorizer"):
        lw.save(words, tmp_path / "m.lw")
    (tmp_path / "a.txt").write_text("word")
    files = text.CountVectorizer(input="filename").fit([tmp_path / "a.txt"])
    with pytest.raises(ValueError, match="reads files"):
        lw.save(files, tmp_path / "m.lw")
    for model in (make_pipeline(preprocessing.StandardScaler()), _columns(), lw.MaxMarginClassifier()):
        with pytest.raises(NotFittedError):
            lw.save(model, tmp_path / "m.lw")
    search = GridSearchCV(lw.MaxMarginClassifier(), {"C": [1.0]}, cv=KFold(2)).fit(X, Y)
    with pytest.raises(TypeError, match="save its best_estimator_"):
        lw.save(search, tmp_path / "m.lw")


def test_a_cache_is_not_kept(tmp_path):
    pipeline = Pipeline([("scale", preprocessing.StandardScaler())], memory=str(tmp_path / "cache")).fit(X)
    assert _again(pipeline, tmp_path).memory is None


def _state(step):
    arrays = {}
    return encode(KeptStep(step).to_state(), arrays), arrays


def _read(state, arrays):
    return decode({"__object__": "ScikitLearn", "state": state}, arrays)


def _bad(change):
    state, arrays = _state(make_pipeline(preprocessing.StandardScaler(), PCA(2)).fit(X))
    scaler = state["fitted"]["parts"][0][1]["state"]
    change(state, scaler, arrays)
    return state, arrays


BAD = {
    "an unknown kind": lambda state, scaler, _: scaler.update({"class": "os.system"}),
    "another kind": lambda state, scaler, _: scaler.update({"class": "NMF"}),
    "a parameter that is not": lambda state, scaler, _: scaler["parameters"].update({"evil": 1}),
    "a value it cannot have": lambda state, scaler, _: scaler["parameters"].update({"with_mean": "maybe"}),
    "a further attribute": lambda state, scaler, _: scaler["fitted"].update({"transform": 1}),
    "a missing attribute": lambda state, scaler, _: scaler["fitted"].pop("mean_"),
    "text for numbers": lambda state, scaler, _: scaler["fitted"].update({"mean_": "0"}),
    "another length": lambda state, scaler, _: scaler.update({"n_features": 3}),
    "a length below 0": lambda state, scaler, _: scaler.update({"n_features": -1}),
    "a step too many": lambda state, scaler, _: state["fitted"]["parts"].append(["pca", "passthrough"]),
    "no steps": lambda state, scaler, _: state["fitted"].update({"parts": []}),
    "a cache": lambda state, scaler, _: state["parameters"].update({"memory": "/tmp"}),
    "a step that is text": lambda state, scaler, _: state["fitted"]["parts"][0].__setitem__(1, "os"),
    "no record": lambda state, scaler, _: scaler.pop("output"),
    "another output": lambda state, scaler, _: scaler.update({"output": "evil"}),
    "a foreign object": lambda state, scaler, _: state["fitted"]["parts"][0].__setitem__(
        1, {"__object__": "Taxonomy", "state": {}}
    ),
}


@pytest.mark.parametrize("change", BAD)
def test_files_made_to_harm_are_refused(change):
    with pytest.raises(ModelFileError):
        _read(*_bad(BAD[change]))


INT = {"__type__": "<i8"}


def _falling(name):
    return lambda state, arrays: arrays.update({name: np.sort(arrays[name], axis=0)[::-1]})


HARMFUL = {
    "a scale of 0": (preprocessing.StandardScaler(), lambda state, arrays: arrays["fitted.scale_"].fill(0.0)),
    "moments it uses": (
        preprocessing.StandardScaler(), lambda state, _: state["fitted"].update(mean_=None),
    ),
    "infinite axes": (PCA(2), lambda state, arrays: arrays["fitted.components_"].fill(np.inf)),
    "falling quantiles": (
        preprocessing.QuantileTransformer(n_quantiles=5),
        _falling("fitted.quantiles_"),
    ),
    "rows that miss more": (
        impute.KNNImputer(), lambda state, arrays: arrays["fitted._mask_fit_X"].fill(False),
    ),
    "features that others choose": (
        feature_selection.SelectFpr(), lambda state, _: state["fitted"].update(pvalues_=None),
    ),
    "unordered categories": (
        preprocessing.OrdinalEncoder(), _falling("fitted.categories.0"),
    ),
    "codes that its type lacks": (
        preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        lambda state, _: state["parameters"].update(unknown_value=0.5, dtype=INT),
    ),
    "words below 1": (
        text.CountVectorizer(), lambda state, _: state["parameters"].update(ngram_range=[-9, 1]),
    ),
    "a function of its own": (
        text.CountVectorizer(),
        lambda state, _: state["parameters"].update(preprocessor="chi2"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMFUL)
def test_what_would_harm_later_is_refused(name):
    step, change = HARMFUL[name]
    rows = WORDS if isinstance(step, text.CountVectorizer) else np.where(X > 1, np.nan, X) if (
        isinstance(step, impute.KNNImputer)
    ) else X  # fmt: skip
    state, arrays = _state(step.fit(rows, Y[:, 0]))
    arrays = {key: np.array(array) for key, array in arrays.items()}
    change(state, arrays)
    with pytest.raises(ModelFileError):
        _read(state, arrays)


def test_steps_that_do_not_fit_together_are_refused():
    pipeline = make_pipeline(PCA(2), lw.MaxMarginClassifier()).fit(X, Y)
    pipeline.steps[0] = ("pca", PCA(3).fit(X))
    with pytest.raises(ModelFileError, match="MaxMarginClassifier takes 2 features, but gets 3"):
        _read(*_state(pipeline))
    union = make_union(preprocessing.OneHotEncoder(), PCA(1)).fit(X)
    pipeline = make_pipeline(union, preprocessing.StandardScaler(with_mean=False)).fit(X)
    pipeline.steps[1][1].set_params(with_mean=True).fit(pipeline[0].transform(X).toarray())
    with pytest.raises(ModelFileError, match="StandardScaler does not accept the output before it"):
        _read(*_state(pipeline))


CODES = RANDOM.integers(3, 6, (30, 2)).astype(float)
NUMBERS = pd.DataFrame({"b": CODES[:, 0], "n": X[:, 0]})
ONE_HOLE = np.where(np.arange(120).reshape(30, 4) == 7, np.nan, X)
PICKY = {
    "wide": (preprocessing.StandardScaler(), np.tile(X, 3_000)),
    "imputed text": (
        make_pipeline(
            impute.SimpleImputer(missing_values=None, strategy="constant", fill_value="missing"),
            preprocessing.OneHotEncoder(),
        ),
        CELLS[:, :2],
    ),
    "imputed codes": (
        make_pipeline(impute.SimpleImputer(strategy="most_frequent"), preprocessing.OrdinalEncoder()),
        CODES,
    ),
    "codes that are objects": (
        make_pipeline(impute.SimpleImputer(strategy="most_frequent"), preprocessing.OneHotEncoder()),
        OBJECTS,
    ),
    "other codes": (make_pipeline(preprocessing.Binarizer(), preprocessing.OneHotEncoder()), CODES),
    "positive": (preprocessing.PowerTransformer("box-cox"), np.exp(X)),
    "few holes": (make_union(impute.SimpleImputer(), impute.MissingIndicator()), ONE_HOLE),
    "one column twice": (
        ColumnTransformer([
            ("o", preprocessing.OneHotEncoder(), ["b"]),
            ("s", preprocessing.StandardScaler(), ["b", "n"]),
        ]),
        NUMBERS,
    ),
    "no column": (
        ColumnTransformer([
            ("o", preprocessing.OneHotEncoder(), []),
            ("s", preprocessing.StandardScaler(), ["b"]),
        ]),
        NUMBERS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PICKY)
def test_steps_that_take_only_rows_like_theirs_come_back(name, tmp_path):
    step, rows = PICKY[name]
    pipeline = make_pipeline(step, lw.MaxMarginClassifier()).fit(rows, Y)
    again = _again(pipeline, tmp_path)
    np.testing.assert_array_equal(again.decision_function(rows), pipeline.decision_function(rows))
    assert repr(again[0]).replace("'drop'", "OneHotEncoder()") == repr(step)  # as strict as before


def test_how_many_processes_work_is_not_kept(tmp_path):
    assert _again(make_union(PCA(1), n_jobs=2).fit(X), tmp_path).n_jobs is None


def test_vocabularies_and_categories_are_checked():
    state, arrays = _state(text.TfidfVectorizer().fit(WORDS))
    arrays["fitted.words"] = arrays["fitted.words"][[0, 0, 1, 2]]
    with pytest.raises(ModelFileError, match="a word occurs twice"):
        _read(state, arrays)
    arrays["fitted.words"] = np.array(["one"])
    with pytest.raises(ModelFileError, match="not one weight per word"):
        _read(state, arrays)
    state["parameters"]["input"] = "filename"
    with pytest.raises(ModelFileError, match="reads files"):
        _read(state, arrays)
    state, arrays = _state(preprocessing.OneHotEncoder(min_frequency=12).fit(CELLS))
    for name in [name for name in arrays if "infrequent" in name]:
        arrays[name] = arrays[name] + 50
    with pytest.raises(ModelFileError, match="not among the categories"):
        _read(state, arrays)
    state, arrays = _state(make_column_transformer((PCA(1), [0, 1])).fit(X))
    state["fitted"]["places"]["pca"] = [0, 9]
    with pytest.raises(ModelFileError, match="do not cover the 4"):
        _read(state, arrays)


def _spots(value, path=()):
    """Find every place of nested state."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    yield from ((*path, key) for key, _ in items)
    for key, part in items:
        yield from _spots(part, (*path, key))


STATE, ARRAYS = _state(_columns().fit(FRAME))
SPOTS = list(_spots(STATE))
VALUES = [None, True, -1, 10**9, float("nan"), "x", "drop", [], [1], {}, {"__array__": "nothing"}, ["a", "b"]]


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(SPOTS), st.sampled_from(VALUES))
def test_changed_states_are_refused_or_read(spot, value):
    state = copy.deepcopy(STATE)
    part = state
    for key in spot[:-1]:
        part = part[key]
    part[spot[-1]] = value
    with contextlib.suppress(ModelFileError):
        _read(state, ARRAYS)
