"""Small runs of killed fits, threads and forks at once, memory, processors and killed commands."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from attacks import killed_commands, killed_fits, processors, record, small_fits, soak, stress

ONE_THREAD = pytest.mark.skipif(
    os.environ.get("OPENBLAS_NUM_THREADS") != "1",
    reason="forks beside fits in other threads fail where OpenBLAS has several threads, see attacks.stress",
)
ALL = list(small_fits.CHECKPOINTED)
QUICK = ["margins, rbf", "margins, coordinates", "logistic, fixed", "low rank"]


def test_marks_tell_fits_apart_and_nothing_else():
    marks = {name: stress.marked_fit(name) for name in QUICK}
    assert len(set(marks.values())) == len(QUICK)
    assert marks == {name: stress.marked_fit(name, n_jobs=2) for name in QUICK}


@pytest.mark.parametrize(("names", "fits"), [(QUICK, 4), pytest.param(ALL, 36, marks=pytest.mark.search)])
def test_killed_fits_go_on_with_the_same_bits(names, fits):
    counts, wrong = killed_fits.run(names, fits)
    assert wrong == []
    assert counts["fits"] == fits
    assert counts["kills"] > 0


def test_a_fit_that_ends_with_other_bits_is_found(tmp_path):
    whole = killed_fits.Whole("other bits", 0.2)
    found = killed_fits.attack("low rank", whole, np.random.default_rng(0), tmp_path)
    assert "other bits in one go" in found.wrong


@pytest.mark.parametrize(
    ("works", "seconds"),
    [
        ([stress.threads, stress.threads, stress.joblib_threads], 1),
        pytest.param([work for work in stress.WORKS if work is not stress.forks], 15, marks=pytest.mark.slow),
        pytest.param(stress.WORKS, 15, marks=[pytest.mark.slow, ONE_THREAD]),
        pytest.param(stress.WORKS, 40, marks=[pytest.mark.search, ONE_THREAD]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_threads_and_processes_at_once_change_no_bit(works, seconds):
    run = stress.Stress(QUICK)
    run.run(works, seconds)
    assert run.wrong == []
    assert set(run.counts) >= {"threads", "joblib's threads"}


def test_other_bits_and_errors_in_threads_are_found():
    def fails(_):
        raise OSError("no")

    run = stress.Stress(["low rank"])
    run.marks = {"low rank": "other"}
    run.run([stress.threads, fails], 1)
    assert "fails: OSError: no" in run.wrong
    run.run([stress.threads], 1)


@pytest.mark.parametrize(
    "fits", [pytest.param(300, marks=pytest.mark.slow), pytest.param(1500, marks=pytest.mark.search)]
)
def test_fits_and_loads_leave_nothing_open_and_no_memory(fits):
    """In a separate process, where nothing else opens files."""
    run = subprocess.run(
        [sys.executable, "-m", "attacks.soak", "--fits", str(fits)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, ""), run.stdout


def test_what_grew_is_said():
    before = soak.held()
    grown = before._replace(memory=2 * before.memory, files=before.files + 1)
    assert soak.grown(before, before) == []
    assert soak.grown(before, grown) == [
        f"open files grew from {before.files} to {before.files + 1}", "memory grew by 100.0%"
    ]  # fmt: skip


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Scores by two threads, and the folder of model files that other processes score with."""
    folder = tmp_path_factory.mktemp("here")
    return processors.scores_under({"OPENBLAS_NUM_THREADS": "2"}, list(small_fits.KINDS), folder), folder


@pytest.mark.parametrize(
    "threads",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "3 threads" else pytest.mark.search)
        for name in processors.THREADS
    ],
)
def test_processes_with_other_numbers_of_threads_give_the_same_bits(threads, here):
    scores, folder = here
    there = processors.scores_under(processors.THREADS[threads], list(scores), folder)
    assert processors.wrong_with_threads(scores, there) == []


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["OpenBLAS for Nehalem", "NumPy for SSE4"])
def test_scores_on_other_processors_differ_by_rounding(processor, here):
    names = ["margins, rbf", "logistic, fixed", "low rank, logistic", "graph, given"]
    there = processors.scores_under(processors.PROCESSORS[processor], names, here[1])
    assert processors.wrong_on_processors({name: here[0][name] for name in names}, there) == []


def test_differences_are_found():
    scores = np.array([[1.0, 0.5]])
    here = {"low rank": processors.Found(scores, scores, scores, 2.0, 1.9)}
    moved = scores + 2.0**-40 * np.array([1.0, 0.5])
    there = {"low rank": processors.Found(moved, scores, scores, 1.8, 1.7)}
    assert processors.wrong_with_threads(here, there) == [
        "low rank: scores of a model file differ by 4.1e+03 units"
    ]
    assert processors.wrong_on_processors(here, there) == [
        "low rank: scores differ by 4096 units", "low rank: a lower bound of 1.9, and an objective of 1.8"
    ]  # fmt: skip


def test_rounding_is_counted_by_the_terms_of_a_score_that_cancel():
    terms = np.array([[1e3, 1.0]])
    here = processors.Found(np.array([[1.0, 1.0]]), terms, terms, 2.0, 1.9)
    rounded = here._replace(stored=here.stored + np.array([2.0**-40, 0.0]))
    wrong = here._replace(stored=here.stored + np.array([0.0, 2.0**-40]))
    assert processors.wrong_on_processors({"low rank": here}, {"low rank": rounded}) == []
    assert len(processors.wrong_on_processors({"low rank": here}, {"low rank": wrong})) == 1


@pytest.mark.parametrize("name", ["margins, rbf", "low rank", "low rank, logistic", "graph, scores", "tuned"])
def test_terms_are_as_large_as_what_they_add_up_to(name):
    X, Y = small_fits.data_of(name, 40)
    model = small_fits.fitted(clone(small_fits.KINDS[name]), X, Y)
    terms, scores = processors.sums_of_terms(model, X), small_fits.scores_of(model, X)
    assert terms.shape == scores.shape
    assert (terms >= np.abs(scores) * (1 - 1e-12)).all()


def test_terms_of_kernels_are_values_times_coefficients():
    X, Y = small_fits.data_of("margins, rbf", 40)
    model = small_fits.fitted(clone(small_fits.KINDS["margins, rbf"]), X, Y)
    block = rbf_kernel(X, X[model.support_], model.kernel_.gamma)
    expected = block @ np.abs(model.dual_coef_) + np.abs(model.intercept_)
    np.testing.assert_allclose(processors.sums_of_terms(model, X), expected)


@pytest.mark.parametrize(
    "runs", [pytest.param(5, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.search)]
)
def test_killed_commands_leave_complete_files(runs):
    ends, wrong = killed_commands.run(list(killed_commands.COMMANDS), runs, n_rows=400)
    assert wrong == []
    assert ends.total() == runs


def test_commands_are_interrupted_where_their_parent_is_not(tmp_path):
    earlier = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a shell's background jobs
    try:
        process = killed_commands.COMMANDS["fit"].start(tmp_path)
    finally:
        signal.signal(signal.SIGINT, earlier)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode in (-signal.SIGINT, 130)


@pytest.mark.slow
def test_a_file_that_is_not_complete_is_found(tmp_path):
    whole = killed_commands.prepare(tmp_path, ["convert"], n_rows=50)["convert"]
    late = killed_commands.Whole(whole.content[:-1], 1e4)  # so that no signal is sent
    found = killed_commands.attack(
        killed_commands.COMMANDS["convert"], late, tmp_path, np.random.default_rng(0)
    )
    assert found == ("done", ["d.svm is neither the earlier file nor a complete one"])


def test_a_page_of_many_runs_has_a_line_of_each_and_all_that_a_failed_one_said():
    run = {"command": "python -m attacks.soak", "date": "2026-11-26", "seconds": 3, "said": ["a", "b"]}
    lines = [record._run_line(run | {"exit": status}).rpartition(" | 3 | ")[2] for status in (0, 1)]
    assert lines == ["b |", "a; b |"]
