"""Every public name keeps the contract of its inputs: a finite result, or a refusal in one sentence."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")
pytest.importorskip("networkx")
input_contracts = pytest.importorskip("attacks.input_contracts")

from attacks.contract_table import CONTRACTS, WITHOUT, ContractWorld  # noqa: E402
from attacks.public_names import public_names  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
_WORLDS = 2
# whose calls take long: only the search runs them
_LONG_CALLS = (
    *("display.", "report.", "compare", "AutoLabelClassifier", "LabelGraphClassifier"),
    *("TunedThresholdClassifier", "CalibratedLabelClassifier", "noise."),
)
_ANY = {"suppress_health_check": list(HealthCheck)}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    with input_contracts.limits():
        yield [ContractWorld(k, tmp_path_factory.mktemp(f"world{k}")) for k in range(_WORLDS)]


def _keeps_valid(name, worlds, data):
    contract, world = CONTRACTS[name], data.draw(st.sampled_from(worlds))
    choices = {argument: data.draw(st.integers(0, 11)) for argument in contract.arguments}
    valid = input_contracts.valid_arguments(world, contract, choices)
    assert input_contracts.violation(world, contract, valid) is None


def _keeps_hostile(name, worlds, data):
    contract, world = CONTRACTS[name], data.draw(st.sampled_from(worlds))
    argument = data.draw(st.sampled_from(list(contract.arguments)))
    values = input_contracts.hostile_values(world, contract, argument)
    what = data.draw(st.sampled_from(list(values)))
    valid = input_contracts.valid_arguments(world, contract, {})
    found = input_contracts.violation(world, contract, valid | {argument: values[what]}, argument)
    assert found is None, f"{name}, {argument} is {what}: {found}"


def test_every_public_name_has_a_contract():
    names, known = set(public_names()), {*CONTRACTS, *WITHOUT}
    assert names - known == set(), "add them to attacks/contract_table.py"
    assert known - names == set(), "these are public no more"


def _keeps(name, worlds, **how):
    @settings(**how, **_ANY)
    @given(data=st.data())
    def tried(data):
        _keeps_valid(name, worlds, data)
        if CONTRACTS[name].arguments:
            _keeps_hostile(name, worlds, data)

    tried()


@pytest.mark.parametrize("name", [name for name in CONTRACTS if not name.startswith(_LONG_CALLS)])
def test_valid_and_hostile_inputs(name, worlds):
    """A few of each, the same in every run."""
    _keeps(name, worlds, max_examples=4)


@pytest.mark.search
@pytest.mark.parametrize("name", CONTRACTS)
def test_many_valid_and_hostile_inputs(name, worlds):
    _keeps(name, worlds, max_examples=200, derandomize=False)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (lambda: "".join([])[1], "IndexError"),
        (lambda: np.ones(2) + np.ones(3), "came upon"),
        (lambda: {}["a"], "KeyError"),
        (lambda: int("a"), "came upon"),
    ],
)
def test_errors_come_upon_are_told(error, words):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        error()
    assert words in input_contracts.fault(caught.value, "")


def test_answers_that_are_not_finite_are_told():
    assert input_contracts.not_finite({"a": [1.0, np.nan]})
    assert not input_contracts.not_finite((1, "nan", np.ones(2)))
