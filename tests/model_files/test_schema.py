"""What a class does not allow is refused before an object is created, and files request little memory."""

import json
import tracemalloc

import numpy as np
import pytest

import labelweave
from labelweave import BinaryRelevance, LabelGraphClassifier, LabelTreeClassifier, MaxMarginClassifier
from labelweave.features.kernels import PolynomialKernel, RBFKernel
from labelweave.labels import CliqueGraph, LabelCovariance, Taxonomy
from labelweave.model_files import (
    ModelContent,
    ModelFileError,
    load_object,
    save_object,
    schema,
    write_model_file,
)
from labelweave.model_files.storable import _SCHEMAS, registered_class

ONES = np.ones((2, 3))


def test_what_fields_allow():
    sizes = {}
    schema.Record(
        {
            "a": schema.Numbers("n k"),
            "b": schema.Maybe(schema.Texts("n"), schema.Numbers("n")),
            "c": schema.Optional(schema.TEXT),
        }
    ).check({"a": ONES, "b": np.zeros(2)}, "x", sizes)
    assert sizes == {"n": 2, "k": 3}
    schema.Numbers("_ _").check(ONES, "x", sizes)
    schema.MEASURED.check(np.nan, "x", sizes)
    schema.OneOf((0, -1)).check(-1, "x", sizes)
    with schema.unread_numbers():
        schema.Numbers("n").check(np.full(2, np.nan), "x", sizes)


def test_every_class_that_labelweave_registers_has_a_schema():
    assert labelweave.load is load_object  # and requesting it imports all of them
    own = [name for name, cls in _registered().items() if cls.__module__.startswith("labelweave.")]
    states = {"MaxMarginClassifier", "KernelLogisticClassifier", "LowRankClassifier"}
    states |= {"LabelGraphClassifier", "BinaryRelevance", "ZeroShotClassifier"}
    states |= {"TunedThresholdClassifier", "CalibratedLabelClassifier", "ConformalLabelClassifier"}
    states |= {"AutoLabelClassifier", "HierarchicalClassifier", "LabelTextClassifier", "LabelTreeClassifier"}
    groups = {"GraphGrowth", "HyperparameterSearch", "RankSearch"}  # checked as parameters are
    without = set(own) - _SCHEMAS.keys() - {"CallableKernel"} - groups
    assert without == states | {"ScikitLearn"}  # these check theirs, by the tables _stored
    assert all(callable(registered_class(name)._check_state) for name in states)


def _registered():
    from labelweave.model_files.storable import _CLASSES

    return _CLASSES


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.lw"
    BinaryRelevance().fit(np.eye(4)[[0, 1, 2, 3, 0]], np.eye(4, dtype=int)[[0, 1, 2, 3, 1]]).save(path)
    return path


def edit_state(forged, path, change):
    def edit(entries):
        state = json.loads(entries["__metadata__"]["state"])
        change(state)
        entries["__metadata__"]["state"] = json.dumps(state, separators=(",", ":"))

    path.write_bytes(forged(path.read_bytes(), edit))


EDITS = {
    "a name of a method": (lambda s: s["fitted"].update(predict=3), "'predict', which is not a known name"),
    "a private name": (lambda s: s["fitted"].update(_form=3), "'_form', which is not a known name"),
    "another number of features": (lambda s: s["fitted"].update(n_features_in_=5), "weights for 5 features"),
    "no threshold": (lambda s: s["fitted"].pop("threshold_"), "no 'threshold_'"),
    "a parameter of another class": (lambda s: s["parameters"].update(rank=3), "dictionary of parameters"),
    "a parameter that fits refuse": (lambda s: s["parameters"].update(max_iter=-1), "'max_iter' parameter"),
    "fewer classes": (lambda s: s["form"].update(kind="binary"), "4 binary, 4 scores"),
    "another form": (lambda s: s["form"].update(kind="ranking"), "'labels', 'binary', 'multiclass'"),
    "no scorer": (lambda s: s["fitted"].update(scorer_=None), "an object of Scorer"),
}


@pytest.mark.parametrize(("change", "said"), EDITS.values(), ids=EDITS.keys())
def test_a_state_that_a_model_cannot_have(saved, forged, change, said):
    edit_state(forged, saved, change)
    with pytest.raises(ModelFileError, match=said):
        labelweave.load(saved)


def test_numbers_are_looked_at_with_the_checksum_only(saved):
    content = labelweave.model_files.read_model_file(saved)
    arrays = dict(content.arrays)
    name = next(name for name in arrays if name.endswith("weights"))
    arrays[name] = np.full_like(arrays[name], np.nan)
    write_model_file(saved, ModelContent(content.kind, content.state, arrays))
    with pytest.raises(ModelFileError, match=r"LinearScorer.weights is not all numbers"):
        labelweave.load(saved)
    assert np.isnan(labelweave.load(saved, verify=False).coef_).all()


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model = MaxMarginClassifier().fit(np.eye(3), np.eye(3, dtype=int))
    model.surprise_ = 3
    with pytest.raises(ValueError, match=r"The MaxMarginClassifier cannot be saved: .*'surprise_'"):
        model.save(tmp_path / "m.lw")
    assert list(tmp_path.iterdir()) == []


HUNGRY = {
    "labels of a covariance": ("IdentityCovariance", {"n_labels": 10**9}, {}),
    "labels of a graph": (
        "CliqueGraph",
        {
            "n_labels": 10**9,
            "sizes": {"__array__": "none"},
            "members": {"__array__": "none"},
            "label_names": None,
            "weights": None,
            "signs": None,
        },
        {"none": np.zeros(0, np.int64)},
    ),
    "a wide text": ("Taxonomy", {}, {"names": np.array(["a" * 40_000])}),
}


@pytest.mark.parametrize(("kind", "state", "arrays"), HUNGRY.values(), ids=HUNGRY.keys())
def test_memory_that_a_file_can_ask_for(tmp_path, kind, state, arrays):
    write_model_file(tmp_path / "m.lw", ModelContent(kind, state, arrays))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        load_object(tmp_path / "m.lw")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


def test_texts_that_would_be_padded_to_much_more_are_neither_written_nor_read(tmp_path, forged):
    wide = np.array(["a"] * 2000, dtype="<U50000")
    with pytest.raises(ValueError, match="more than 1,024 times"):
        write_model_file(tmp_path / "m", ModelContent("Demo", {}, {"names": wide}))
    write_model_file(tmp_path / "m", ModelContent("Demo", {}, {"names": wide.astype("<U2")}))

    def widen(entries):
        said = entries["__metadata__"]["arrays"].replace('"width":2', '"width":50000')
        entries["__metadata__"]["arrays"] = said

    (tmp_path / "m").write_bytes(forged((tmp_path / "m").read_bytes(), widen))
    with pytest.raises(ModelFileError, match="too much for its size"):
        load_object(tmp_path / "m")


OBJECTS = [
    LabelCovariance.identity(3),
    LabelCovariance.dense(np.eye(2)),
    CliqueGraph(3, [(0, 1)], ["a", "b", "c"]),
    Taxonomy([("a", "b")]),
    RBFKernel("scale") + 2.0 * PolynomialKernel(2, 1.0),
]


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_objects_alone(tmp_path, value):
    save_object(tmp_path / "m", value)
    assert type(load_object(tmp_path / "m")) is type(value)


RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(40, 3)), (RANDOM.random((40, 4)) < 0.5).astype(int)


@pytest.fixture(scope="module")
def graph_model():
    return LabelGraphClassifier(graph=CliqueGraph(4, [(0, 1), (1, 2)])).fit(X, Y)


def test_the_graph_of_a_model_is_that_of_its_scorer(graph_model):
    for cliques in ([(0, 1)], [(0, 1), (1, 3)]):
        state = graph_model.to_state()
        state["fitted"]["label_graph_"] = CliqueGraph(4, cliques)
        with pytest.raises(ModelFileError, match="has other cliques than the graph of its scorer_"):
            LabelGraphClassifier.from_state(state)


def test_a_model_that_needs_parts_of_its_scorer_has_one_of_its_kind(graph_model):
    linear = MaxMarginClassifier().fit(X, Y)
    for model, others in ((LabelTreeClassifier().fit(X, Y), (linear, graph_model)), (graph_model, (linear,))):
        for other in others:
            state = model.to_state()
            state["fitted"]["scorer_"] = other.scorer_
            with pytest.raises(ModelFileError, match="scorer_ is not an object of"):
                type(model).from_state(state)
