"""Objects are saved and loaded by registered name; nothing is imported or run by name."""

import numpy as np
import pytest

from labelweave import model_files


@model_files.storable("tests.Covariance")
class Covariance:
    def __init__(self, factor):
        self.factor = factor

    def to_state(self):
        return {"factor": self.factor}

    @classmethod
    def from_state(cls, state):
        return cls(state["factor"])


@model_files.storable("tests.Model")
class Model:
    def __init__(self, C, covariance):
        self.C = C
        self.covariance = covariance

    def to_state(self):
        return {"C": self.C, "covariance": self.covariance, "range": (1, np.float32(0.5))}

    @classmethod
    def from_state(cls, state):
        assert state["range"] == (1, np.float32(0.5))
        return cls(state["C"], state["covariance"])


class Unregistered(Model):
    pass


def test_objects_inside_objects_come_back(tmp_path):
    model_files.save_object(tmp_path / "m.lw", Model(np.inf, Covariance(np.eye(3))))
    model = model_files.load_object(tmp_path / "m.lw")
    assert type(model) is Model
    assert np.isposinf(model.C)
    assert type(model.covariance) is Covariance
    np.testing.assert_array_equal(model.covariance.factor, np.eye(3))
    assert not model.covariance.factor.flags.writeable


def test_a_subclass_is_not_saved_as_its_parent(tmp_path):
    with pytest.raises(TypeError, match="Unregistered cannot be stored"):
        model_files.save_object(tmp_path / "m.lw", Unregistered(1.0, None))


@pytest.mark.parametrize("name", ["os.system", "tests.Unknown", "Covariance", "", "builtins.eval"])
def test_an_unknown_name_is_refused(tmp_path, name):
    model_files.write_model_file(
        tmp_path / "m.lw", model_files.ModelContent("tests.Model", {"x": {"__object__": name, "state": {}}})
    )
    with pytest.raises(model_files.ModelFileError, match=r"m\.lw.*is not registered"):
        model_files.load_object(tmp_path / "m.lw")


def test_a_state_that_the_class_does_not_take(tmp_path):
    model_files.write_model_file(tmp_path / "m.lw", model_files.ModelContent("tests.Model", {"C": 1}))
    with pytest.raises(model_files.ModelFileError, match="KeyError: 'range'") as caught:
        model_files.load_object(tmp_path / "m.lw")
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="is taken by"):
        model_files.storable("tests.Model")(Covariance)


def test_a_class_without_the_methods_is_refused():
    with pytest.raises(TypeError, match="no method to_state"):
        model_files.storable("tests.Empty")(type("Empty", (), {}))


def test_a_module_loaded_again_may_register_again():
    again = type("Model", (Model,), {"__module__": Model.__module__, "__qualname__": "Model"})
    try:
        assert model_files.storable("tests.Model")(again) is again
    finally:
        model_files.storable("tests.Model")(Model)


def test_a_state_that_is_no_dict_is_refused(tmp_path):
    @model_files.storable("tests.Wrong")
    class Wrong(Model):
        def to_state(self):
            return [1]

    with pytest.raises(TypeError, match="must return a dict"):
        model_files.save_object(tmp_path / "m.lw", Wrong(1, None))
