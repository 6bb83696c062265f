"""Flags generated from the constructors: names, values, help, and the parameters that they set."""

import ast
import inspect
import json
import re
import signal
import subprocess
import sys
from numbers import Integral, Real
from pathlib import Path

import click
import click.testing
import numpy as np
import pytest
import write_model_flags

import labelweave
from labelweave.app.cli import flags, model_flags, program
from labelweave.app.cli.messages import flag_of
from labelweave.app.cli.model_flags import MODELS, class_of
from labelweave.datasets.any_file import FORMATS
from labelweave.estimators.label_graph.choice import GRAPHS
from labelweave.foundation.sklearn_compat import Interval, StrOptions

LIGHT = """
import sys, types
package = types.ModuleType("labelweave")
package.__path__ = [{folder!r}]
sys.modules["labelweave"] = package
from labelweave.app.cli.program import main
try:
    main({words!r})
except SystemExit:
    print("numpy" in sys.modules, "rich" in sys.modules)
"""

MARKING = ("ParameterError", "ParameterMessage", "warn_of_end", "warn_of_time", "warn_of_memory")

KILLED = """
import os, signal
from labelweave.app.cli.program import main
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


def test_what_the_constructors_say_is_in_the_file():
    """python scripts/write_model_flags.py writes it again."""
    said = write_model_flags.written(write_model_flags.described())
    assert write_model_flags.PLACE.read_text(encoding="utf-8") == said


def test_every_parameter_is_a_flag_or_a_structure_of_labels():
    table, without = model_flags.model_table(), write_model_flags._NO_FLAGS
    for model in MODELS:
        known = {parameter.name for parameter in table.of(model).values()}
        known |= {name for name, models in table.objects.items() if model in models}
        known |= {name for name, models in without.items() if models is None or model in models}
        assert set(inspect.signature(class_of(model)).parameters) <= known
    assert {"label_covariance", "taxonomy", "graph"} <= set(table.objects)


def test_a_new_parameter_is_a_flag_without_a_line(monkeypatch, tmp_path):
    monkeypatch.setattr(write_model_flags, "MODELS", {"toy": f"{__name__}:Toy"})
    monkeypatch.setattr(write_model_flags, "class_of", lambda model: Toy)
    (tmp_path / "model_flags.json").write_text(write_model_flags.written(write_model_flags.described()))
    monkeypatch.setattr(model_flags, "__file__", str(tmp_path / "model_flags.py"))
    table = model_flags.model_table.__wrapped__()
    assert set(table.flags) == {"width", "depth", "shallow", "no_even", "checkpoint"}
    assert table.objects == {"tree": ["toy"], "device": []}
    monkeypatch.setattr(model_flags, "model_table", lambda: table)

    @click.command()
    @flags.with_options(*model_flags.model_flag_options())
    def fit(**options):
        print(json.dumps(table.keywords("toy", {k: v for k, v in options.items() if v is not None}, {})))

    def call(*words):
        return click.testing.CliRunner().invoke(fit, words)

    assert json.loads(call("--width", "2.5", "--depth", "4", "--checkpoint", "a.lwc").output) == {
        "width": 2.5, "depth": 4, "checkpoint": "a.lwc"
    }  # fmt: skip
    assert json.loads(call("--width", "narrow", "--shallow").output) == {"width": "narrow", "shallow": True}
    assert json.loads(call("--no-even").output) == {"even": False}
    assert "'broad' is neither a number nor wide or narrow." in call("--width", "broad").output
    assert "'many' is not a valid integer" in call("--depth", "many").output
    help_text = " ".join(call("--help").output.split())
    for words in ("toy: how wide it is [wide].", "toy: how deep it is [3].", "--checkpoint FILE",
                  "toy: turn off: whether it is even."):  # fmt: skip
        assert words in help_text


@pytest.mark.parametrize(
    "words",
    ["--help", "fit --help", "fit --help-all", "fit a.csv --frobnicate", "fit a --C x"]
    + [f"{name} --help" for name in program._COMMANDS],
)
def test_help_and_errors_of_flags_import_nothing_heavy(words):
    script = LIGHT.format(folder=labelweave.__path__[0], words=words.split())
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"


def test_names_that_are_slow_to_import_are_the_same():
    from labelweave.app.cli.fit import _GRAPHS

    assert set(flags._FORMATS) == set(FORMATS)
    assert set(_GRAPHS) == set(GRAPHS)


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
    assert "labelweave: --checkpoint c.lwc belongs to another fit: the parameters" in refused
    assert refused.count("\n") == 1
    run(*words, "--out", "m.lw")
    assert not (tmp_path / "c.lwc").exists()
    run(*words[:2], *words[4:], "--out", "n.lw")
    one, other = (labelweave.load(name) for name in ("m.lw", "n.lw"))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


def test_help_is_short_and_all_of_it_has_a_section_a_model(run):
    short, whole = (run("fit", flag).out for flag in ("--help", "--help-all"))
    assert len(short.splitlines()) <= 42
    for flag in ("--out", "--model", "--labels", "--label-column", "--text", "--jobs", "--help-all"):
        assert f" {flag} " in short
    titles = ["Options:", "Most models:", "Several models:", "--model kernel-logistic:",
              "--model label-graph:", "How labels are related:", "From scores to decisions:",
              "DATA that is a table:"]  # fmt: skip
    places = [whole.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)
    assert (
        whole.rindex("  --label-covariance") < whole.index("\n--model low-rank:") < whole.rindex("  --ranks")
    )
    assert all(flag_of(flag) in whole for flag in model_flags.model_table().flags)
    assert "\n--model low-rank:\n" in run("cross-validate --help-all").out
    assert "or as they are [auto]" in " ".join(whole.split())  # the default of the command


@pytest.mark.parametrize("model", MODELS)
def test_help_shows_one_model_alone(run, model):
    table = model_flags.model_table()
    short, whole = (run("fit --model", model, flag).out for flag in ("--help", "--help-all"))
    for flag, owners in table.flags.items():
        assert (f" {flag_of(flag)} " in f"{short} ".replace("\n", " ")) == (model in owners), flag
        assert (f" {flag_of(flag)} " in f"{whole} ".replace("\n", " ")) == (model in owners), flag
    assert "--covariance-from" in whole
    assert "--covariance-from" not in short
    assert not re.search(r"(as in|as of|see) [A-Z]", " ".join(whole.split())), (
        "who runs commands reads no classes"
    )


def _marked(call):
    """Return the parameters that a message marks, in the text of a call."""
    parts = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant)]
    return re.findall(r"`(\w+)(?:=|`)", "".join(part for part in parts if isinstance(part, str)))


def test_what_errors_of_the_library_mark_as_a_parameter_is_a_flag():
    """Others are in no flag, and are named as in Python; structures of labels come from several flags."""
    table, package = model_flags.model_table(), Path(labelweave.__path__[0])
    names = {one.name for owners in table.flags.values() for one in owners.values()}
    names |= {parameter.name for parameter in program.main.get_command(None, "fit").params}
    names |= {"taxonomy", "label_covariance", "label_mean", "graph", "unknown_labels"}
    found = {}
    for file in package.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in MARKING:
                found |= dict.fromkeys(_marked(call), file.name)
            if isinstance(call, ast.Raise) and not set(MARKING) & {
                getattr(one, "id", "") for one in ast.walk(call)
            }:
                assert not _marked(call), f"{file.name}:{call.lineno} shows backticks"
    assert len(found) > 20
    assert {name: file for name, file in found.items() if name not in names} == {}


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ("max-margin --C 0.5 --jobs 2 --no-intercept", {"C": 0.5, "n_jobs": 2, "fit_intercept": False}),
        ("max-margin --flip-rates 0.1,0.02", {"flip_rates": [0.1, 0.02]}),
        ("max-margin --flip-rates propensity --threshold -0.25",
         {"flip_rates": "propensity", "threshold": -0.25}),
        ("max-margin --kernel poly --gamma auto --degree 2 --coef0 0.5",
         {"gamma": "auto", "degree": 2, "coef0": 0.5}),
        ("max-margin --kernel rbf --gamma 2 --solver cholesky --dtype float32",
         {"gamma": 2.0, "solver": "cholesky", "dtype": "float32"}),
        ("max-margin --hyperparameters learn --cv 3 --label-covariance learn",
         {"cv": 3, "label_covariance": "learn"}),
        ("kernel-logistic --tie class --max-learning-iter 1", {"tie": "class", "max_learning_iter": 1}),
        ("kernel-logistic --tie shared,class --cv 3", {"tie": ["shared", "class"], "cv": 3}),
        ("kernel-logistic --label-covariance 2 --learning-rows 30",
         {"label_covariance": 2, "learning_rows": 30}),
        ("kernel-logistic --label-covariance learn --learning-blocks 2",
         {"label_covariance": "learn", "learning_blocks": 2}),
        ("kernel-logistic --kernel-rank 20 --kernel laplacian --hyperparameters fixed --threshold 0.3",
         {"kernel_rank": 20, "kernel": "laplacian", "hyperparameters": "fixed", "threshold": 0.3}),
        ("kernel-logistic --intercept-variance 0 --seed 3 --scale 2",
         {"intercept_variance": 0.0, "random_state": 3, "scale": 2.0}),
        ("low-rank --rank 0.4 --loss log_loss --tol 1e-2 --max-iter 40",
         {"rank": 0.4, "loss": "log_loss", "tol": 0.01, "max_iter": 40}),
        ("low-rank --rank 2 --alpha 0.3 --penalty ridge --threshold 0.4 --class-weight 0.25,1",
         {"rank": 2, "alpha": 0.3, "penalty": "ridge", "threshold": 0.4,
          "class_weight": {0: 0.25, 1: 1}}),
        ("low-rank --init random --class-weight balanced", {"init": "random", "class_weight": "balanced"}),
        ("low-rank --cv 3 --ranks 0.2,0.4 --alphas 0.1,1 --scoring precision_at_1",
         {"cv": 3, "ranks": [0.2, 0.4], "alphas": [0.1, 1], "scoring": "precision_at_1"}),
        ("low-rank --ranks '2, 5' --alpha 0.5", {"ranks": [2, 5], "alphas": [0.5]}),
        ("low-rank --alphas 3 --rank 0.4 --rule one_standard_error",
         {"ranks": [0.4], "alphas": 3, "rule": "one_standard_error"}),
        ("low-rank --alphas 0 --ranks 3", {"ranks": [3], "alphas": [0]}),
        ("low-rank --alphas 0.5 --penalty ridge --hyperparameters learn",
         {"alphas": [0.5], "penalty": "ridge", "hyperparameters": "learn"}),
        ("label-graph --cliques-per-round 2 --max-rounds 2 --graph-tol 0.001 --early-stopping",
         {"cliques_per_round": 2, "max_rounds": 2, "graph_tol": 0.001, "early_stopping": True}),
        ("label-graph --clique-size 3 --validation-fraction 0.2 --no-intercept",
         {"clique_size": 3, "validation_fraction": 0.2, "fit_intercept": False}),
        ("label-graph --graph full --inference exact --exact-width 5",
         {"graph": "full", "inference": "exact", "exact_width": 5}),
        ("label-graph --graph full --inference 7", {"graph": "full", "inference": 7}),
        ("label-graph --graph none --false-positive-cost 2 --false-negative-cost 0.5",
         {"graph": "none", "false_positive_cost": 2.0, "false_negative_cost": 0.5}),
        ("label-tree --leaf-size 2 --prune off --loss hinge --n-trees 2",
         {"leaf_size": 2, "prune": "off", "loss": "hinge", "n_trees": 2}),
        ("binary-relevance --loss log_loss", {"loss": "log_loss"}),
        ("auto --members 'rbf, linear'", {"members": ["rbf", "linear"]}),
    ],
)  # fmt: skip
def test_flags_reach_the_constructor(run, monkeypatch, words, parameters):
    asked = []
    monkeypatch.setattr("labelweave.app.cli.fitting.run_fit", lambda request: asked.append(request) or 0)
    run(f"fit d.txt --out m.lw --model {words}")
    graph = asked[0].flags.graph
    found = {} if graph is None else {"graph": graph}
    made = asked[0].classifier(found).get_params()
    own = {name.rpartition("__")[2]: value for name, value in made.items()}
    assert {name: own[name] for name in parameters} == parameters
