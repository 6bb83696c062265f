"""Flags that come from the constructors: which there are, what they take, and when they are read anew."""

from __future__ import annotations

import inspect
import json
import signal
import subprocess
import sys
from numbers import Integral, Real

import click
import click.testing
import numpy as np
import pytest

import labelweave
from labelweave.cli import flags, model_flags, model_table, program
from labelweave.cli.model_table import MODELS, class_of
from labelweave.datasets.any_file import FORMATS
from labelweave.estimators.label_graph.choice import GRAPHS
from labelweave.sklearn_compat import Interval, StrOptions

LIGHT = """
import sys, types
package = types.ModuleType("labelweave")
package.__path__ = [{folder!r}]
sys.modules["labelweave"] = package
from labelweave.cli import main
try:
    main({words!r})
except SystemExit:
    print("numpy" in sys.modules)
"""

KILLED = """
import os, signal
from labelweave.cli import main
from labelweave.estimators import journal
journal._SECONDS = 0.0
write, calls = journal.Journal.write, []
def killed(self):
    write(self)
    calls.append(1)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
journal.Journal.write = killed
main()
"""


class Toy:
    """A model to be fitted.

    Parameters
    ----------
    width : {"wide", "narrow"} or float, default="wide"
        How wide it is.  More is said elsewhere.
    depth : int, default=3
        How deep it is.
    shallow : bool, default=False
        Whether it is shallow.
    even : bool, default=True
        Whether it is even.
    checkpoint : path-like or None, default=None
        A file.
    warm_start : bool, default=False
        Of no use in a new process.
    tree : object, default=None
        What no flag can hold.
    """

    _parameter_constraints = {  # noqa: RUF012
        "width": [StrOptions({"wide", "narrow"}), Interval(Real, 0, None, closed="neither")],
        "depth": [Interval(Integral, 1, 9, closed="both")],
        "shallow": ["boolean"],
        "even": ["boolean"],
        "checkpoint": [str, None],
        "warm_start": ["boolean"],
        "tree": "no_validation",
    }

    def __init__(
        self, width="wide", depth=3, shallow=False, even=True, checkpoint=None, warm_start=False, tree=None
    ):
        pass


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """The table read anew, in place of the one that is kept."""
    monkeypatch.setattr(model_table, "__file__", str(tmp_path / "package" / "cli" / "model_table.py"))
    (tmp_path / "package" / "cli" / "__pycache__").mkdir(parents=True)
    (tmp_path / "package" / "cli" / "model_table.py").write_text("")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    model_table.model_table.cache_clear()
    yield tmp_path / "package" / "cli" / "__pycache__" / "model_flags.json"
    model_table.model_table.cache_clear()


def test_every_parameter_is_a_flag_or_a_structure_of_labels():
    table = model_table.model_table()
    for model in MODELS:
        known = {parameter.name for parameter in table.of(model).values()}
        known |= {name for name, models in table.objects.items() if model in models}
        known |= {name for name, models in model_table._NO_FLAGS.items() if models is None or model in models}
        assert set(inspect.signature(class_of(model)).parameters) <= known
    assert {"label_covariance", "taxonomy", "graph"} <= set(table.objects)


def test_a_new_parameter_is_a_flag_without_a_line(monkeypatch, fresh):
    monkeypatch.setattr(model_table, "MODELS", {"toy": f"{__name__}:Toy"})
    monkeypatch.setattr(model_table, "_CHOOSING", {})
    monkeypatch.setattr(model_table, "class_of", lambda model: Toy)
    table = model_table.model_table()
    assert set(table.flags) == {"width", "depth", "shallow", "no_even", "checkpoint"}
    assert table.objects == {"tree": ("toy",)}
    monkeypatch.setattr(model_flags, "model_table", lambda: table)

    @click.command()
    @flags.with_options(*model_flags.model_flag_options())
    def fit(**options):
        print(json.dumps(table.keywords("toy", {k: v for k, v in options.items() if v is not None})))

    def call(*words):
        return click.testing.CliRunner().invoke(fit, words)

    assert json.loads(call("--width", "2.5", "--depth", "4", "--checkpoint", "a.lwc").output) == {
        "width": 2.5, "depth": 4, "checkpoint": "a.lwc"
    }  # fmt: skip
    assert json.loads(call("--width", "narrow", "--shallow").output) == {"width": "narrow", "shallow": True}
    assert json.loads(call("--no-even").output) == {"even": False}
    assert "'-1' is neither a number above 0 nor one of wide, narrow." in call("--width", "-1").output
    assert "10 is not in the range 1<=x<=9" in call("--depth", "10").output
    help_text = " ".join(call("--help").output.split())
    for words in ("toy: how wide it is [wide].", "toy: how deep it is [3]. [1<=x<=9]", "--checkpoint FILE"):
        assert words in help_text


def test_the_table_is_kept_until_a_constructor_changes(fresh, monkeypatch):
    first = model_table.model_table()
    assert json.loads(fresh.read_text())["state"] == model_table._state_of_sources()
    monkeypatch.setattr(model_table, "_read_constructors", lambda: pytest.fail("read again"))
    model_table.model_table.cache_clear()
    assert model_table.model_table() == first
    estimators = fresh.parents[2] / "estimators"
    estimators.mkdir()
    (estimators / "new.py").write_text("x = 1\n")
    model_table.model_table.cache_clear()
    monkeypatch.setattr(model_table, "_read_constructors", lambda: {"flags": {}, "objects": {"x": []}})
    assert model_table.model_table().objects == {"x": ()}
    fresh.write_text("{")  # cut short
    model_table.model_table.cache_clear()
    assert model_table.model_table().objects == {"x": ()}


def test_a_folder_that_cannot_be_written_is_no_error(fresh):
    fresh.parent.rmdir()
    own = ["class_weight", "jobs", "loss", "max_iter", "no_intercept", "regularization", "tol"]
    assert sorted(model_table.model_table().of("binary-relevance")) == own


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["fit", "--help"],
        ["fit", "a.csv", "--frobnicate"],
        ["fit", "a", "--C", "-1"],
        *([name, "--help"] for name in program._COMMANDS),
    ],
)
def test_help_and_errors_of_flags_import_nothing_heavy(words, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    script = LIGHT.format(folder=labelweave.__path__[0], words=words)
    warm = "from labelweave.cli.model_table import model_table; model_table()"
    subprocess.run([sys.executable, "-c", warm], check=True)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_names_that_are_slow_to_import_are_the_same():
    from labelweave.cli.fit import _GRAPHS

    assert set(flags._FORMATS) == set(FORMATS)
    assert set(_GRAPHS) == set(GRAPHS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tol", "0"], "--tol 0: max-margin needs a number above 0."),
        (["--tol", "nan"], "--tol nan: max-margin needs a number above 0."),
        (["--model", "binary-relevance", "--data-taxonomy"], "--data-taxonomy goes with --model max-margin"),
        (["--model", "label-tree", "--leaf-size", "0"], "Invalid value for '--leaf-size'"),
        (["--leaf-size", "1"], "--leaf-size goes with --model label-tree, not with max-margin."),
        (
            ["--checkpoint", "c.lwc", "--calibrate", "sigmoid"],
            "--checkpoint keeps one fit, but --calibrate fits",
        ),
    ],
)
def test_values_that_the_model_does_not_take(run, words, message):
    done = run("fit", "a.csv", "--model", "max-margin", "--labels", "tags", "--out", "m.lw", *words, code=2)
    assert message in done.err
    assert done.err.count("\n") == 1


def test_new_flags_reach_the_classifier(run, matrix_files):
    words = ["--model", "label-tree", "--leaf-size", 2, "--prune", "off", "--loss", "hinge", "--n-trees", 2]
    run("fit", "d.txt", "--model", "max-margin", *words, "--out", "m.lw", "-q")
    model = labelweave.load("m.lw")
    assert (model.leaf_size, model.prune, model.loss, model.n_trees) == (2, "off", "hinge", 2)


def test_the_package_is_the_program(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "labelweave", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"labelweave {labelweave.__version__}\n"


@pytest.mark.slow
def test_a_killed_fit_goes_on_from_its_checkpoint(run, matrix_files, tmp_path):
    words = ["fit", "d.txt", "--checkpoint", "c.lwc", "--kernel", "rbf", "--tol", "1e-6", "-q"]
    done = subprocess.run([sys.executable, "-c", KILLED, *words, "--out", "m.lw"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "c.lwc").exists()
    assert not (tmp_path / "m.lw").exists()
    refused = run(*words, "--C", 2, "--out", "m.lw", code=2).err
    assert "labelweave: --checkpoint c.lwc is of another fit: the parameters" in refused
    assert refused.count("\n") == 1
    run(*words, "--out", "m.lw")
    assert not (tmp_path / "c.lwc").exists()
    run(*words[:2], *words[4:], "--out", "n.lw")
    one, other = (labelweave.load(name) for name in ("m.lw", "n.lw"))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


def test_help_has_a_section_a_model_and_shows_one_model_alone(run):
    whole = run("fit", "--help").out
    titles = ["Options:", "Most models:", "Several models:", "--model kernel-logistic:",
              "--model label-graph:", "How labels go together:", "From scores to decisions:",
              "DATA that is a table:"]  # fmt: skip
    places = [whole.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)
    assert whole.rindex("  --coupling") < whole.index("\n--model low-rank:") < whole.rindex("  --ranks")
    alone = run("fit", "--model", "binary-relevance", "--help").out
    assert "--coupling" not in alone
    assert "--regularization" in alone
    assert len(alone.splitlines()) < 0.7 * len(whole.splitlines())
    assert "\n--model low-rank:\n" in run("cross-validate", "--help").out


@pytest.mark.parametrize(("text", "value"), [("0.1,0.02", [0.1, 0.02]), ("propensity", "propensity")])
def test_flip_rates_are_shares_or_a_word(text, value):
    assert model_flags._flip_rates(text) == value


@pytest.mark.parametrize("text", ["0.1", "0.6,0.5", "a,b", "-0.1,0", "0.1,0.1,0.1", "1,0"])
def test_other_flip_rates_are_refused(text):
    with pytest.raises(click.BadParameter, match="propensity"):
        model_flags._flip_rates(text)
