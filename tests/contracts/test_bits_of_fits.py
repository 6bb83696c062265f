"""Every model has the same bits when fitted again, with other threads, resumed, and loaded from a file."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import EVERY, AtSubtask, data_of, fitted, mark
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import labelweave
from drawn import draw_labels
from labelweave import LowRankClassifier, MaxMarginClassifier
from labelweave.estimators import journal
from small_models import data, ends, fit, fit_once, kinds, model, takes

READ_PARAMETERS = ("hierarchy", "zero-shot")  # files hold a taxonomy and a prior as they were read


@kinds()
def test_a_second_fit_is_the_first(name):
    X, Y = data(name)
    expected = mark(fit_once(name), X)
    again = fit(name, X, Y)
    assert mark(again, X) == expected
    assert mark(fitted(again, X, Y), X) == expected


@kinds(takes("n_jobs"))
def test_threads_of_a_fit_change_no_bit(name):
    X, Y = data(name)
    expected = mark(fit_once(name), X)
    for jobs in (1, 2, 5):
        assert mark(fit(name, X, Y, n_jobs=jobs), X) == expected


MANY = (300, 40)  # rows and features, enough for the library to use several threads


@kinds(quick=("margins, rbf", "low rank", "ridge of labels"))
def test_threads_of_linear_algebra_change_no_bit(name):
    X, Y = data_of(name, *MANY)
    many = data_of(name, 2000, MANY[1], seed=1)[0]
    marks = []
    for threads in (1, 2, 5):
        with threadpool_limits(threads):
            marks.append(mark(fitted(clone(EVERY[name]), X, Y), many))
    assert marks == marks[:1] * 3


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(max_iter=2),
        MaxMarginClassifier(kernel="rbf", max_iter=2),
        LowRankClassifier(20, max_iter=2),
        LowRankClassifier(20, kernel="poly", max_iter=2),
    ],
    ids=str,
)
def test_scores_of_many_labels_have_the_same_bits(model, sparse):
    X, Y = draw_labels(500, 120, 200, kept=0.3, noise=0, above=3)
    X = sp.csr_array(X) if sparse else X
    fitted(model, X, Y)
    scores = []
    for threads in (1, 2, 5):
        with threadpool_limits(threads):
            scores.append(model.decision_function(X))
    np.testing.assert_array_equal(scores[1], scores[0])
    np.testing.assert_array_equal(scores[2], scores[0])


@kinds(lambda name: takes("random_state")(name) and name != "zero-shot")  # which takes only numbers
def test_a_generator_of_random_numbers_is_drawn_from(name, reloaded):
    X, Y = data(name)
    one, other = (fit(name, X, Y, random_state=np.random.RandomState(4)) for _ in range(2))
    assert mark(one, X) == mark(other, X)
    assert mark(reloaded(one), X) == mark(one, X)


@kinds()
def test_files_and_copies_hold_the_model(name, tmp_path):
    X, _ = data(name)
    whole = fit_once(name)
    expected = mark(whole, X)
    path = tmp_path / "model.lw"
    whole.save(path)
    for other in (labelweave.load(path), pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)):
        assert type(other) is type(whole)
        assert mark(other, X) == expected
        assert type(other.predict(X)) is type(whole.predict(X))
        np.testing.assert_array_equal(other.predict(X), whole.predict(X))
        if hasattr(whole, "predict_proba"):
            np.testing.assert_array_equal(other.predict_proba(X), whole.predict_proba(X))


@kinds(lambda name: name != "texts of labels")  # files do not hold the function that embeds names
def test_a_model_of_a_file_is_fitted_as_it_was(name, reloaded):
    X, Y = data(name)
    whole = fit_once(name)
    again = reloaded(whole)
    if name not in READ_PARAMETERS:
        assert repr(again) == repr(whole)
    assert mark(fitted(clone(again), X, Y), X) == mark(whole, X)
    assert mark(fitted(again, X, Y), X) == mark(whole, X)


@kinds()
def test_files_of_one_fit_have_the_same_bytes(name, tmp_path):
    for path in ("a", "b"):
        fit_once(name).save(tmp_path / path)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@kinds()
def test_the_layout_of_rows_changes_no_bit(name):
    X, Y = data(name)
    expected = mark(fit_once(name), X)
    for layout in (np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], np.ndarray.tolist):
        other = fit(name, layout(X), Y)
        assert mark(other, X) == expected
        assert mark(other, np.asfortranarray(X)) == expected
    if name == "texts of labels":
        return  # it treats columns as words
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    named = fit(name, frame, Y)
    assert named.feature_names_in_.tolist() == list("uvwxyz")
    scores = named.decision_function if hasattr(named, "decision_function") else named.predict_proba
    plain = fit_once(name)
    np.testing.assert_array_equal(scores(frame), getattr(plain, scores.__name__)(X))


@pytest.fixture
def written(monkeypatch):
    """Return everything that a fit writes into a checkpoint, which is written at every opportunity."""
    states, write = [], journal.Journal.write

    def kept(self):
        write(self)
        states.append(self.path.read_bytes())

    def of(fitted_with):
        with monkeypatch.context() as patch:
            patch.setattr(journal, "_SECONDS", 0.0)
            patch.setattr(journal.Journal, "write", kept)
            return fitted_with(), states

    return of


@kinds(takes("checkpoint"))
def test_a_fit_goes_on_from_all_that_it_writes(name, tmp_path, written):
    """Killed at any time, it has the bits of an uninterrupted fit, and leaves no file."""
    X, Y = data(name)
    path, expected = tmp_path / "fit.lwc", mark(fit_once(name), X)
    whole, states = written(lambda: fit(name, X, Y, checkpoint=path))
    assert mark(whole, X) == expected
    assert not path.exists()
    for state in {states[0], states[len(states) // 3], states[2 * len(states) // 3], states[-1]}:
        path.write_bytes(state)
        assert mark(fit(name, X, Y, checkpoint=path, n_jobs=2), X) == expected
        assert not path.exists()


@kinds(takes("checkpoint"))
def test_a_fit_that_a_callback_stops_goes_on(name, tmp_path):
    X, Y = data(name)
    path = tmp_path / "fit.lwc"
    for at in (1, 3, 8):
        stopped = fitted(model(name, checkpoint=path).set_callbacks(AtSubtask(at)), X, Y)
        assert path.exists() == ("interrupted" in ends(stopped))
        assert len(stopped.predict(X)) == len(X)
        assert mark(fit(name, X, Y, checkpoint=path), X) == mark(fit_once(name), X)
        assert not path.exists()


@kinds(takes("checkpoint"))
def test_a_checkpoint_of_another_fit_is_refused(name, tmp_path, written):
    X, Y = data(name)
    path = tmp_path / "fit.lwc"
    _, states = written(lambda: fit(name, X, Y, checkpoint=path))
    path.write_bytes(states[0])
    other = np.roll(Y, 1) if Y.dtype.kind == "U" else np.where(np.isnan(Y), 1.0, 1 - Y)
    for what, given in {"X": (X + 1e-9, Y), "y": (X, other), "weight": (X, Y, np.full(len(X), 2.0))}.items():
        with pytest.raises(ValueError, match=f"to another fit: .*{what}"):
            model(name, checkpoint=path).fit(*given)
    with pytest.raises(ValueError, match="to another fit: the parameters differ"):
        model(name, checkpoint=path, tol=0.3).fit(X, Y)
    assert path.read_bytes() == states[0]
