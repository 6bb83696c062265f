"""Every fit can be observed, stopped, resumed and refused, with the right model afterwards."""

import copy
import pickle
import signal
import sys
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import EVERY, AtSubtask, fitted, mark
from sklearn.base import clone
from sklearn.callback import ScoringMonitor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave
from labelweave import config_context
from small_models import (
    assert_same_scores,
    complete,
    data,
    ends,
    exact,
    fit,
    fit_once,
    has,
    is_coupled,
    kinds,
    learns,
    model,
    press,
    scores,
    takes,
    with_one_optimum,
)
from watching import Watch


def watched(name):
    """Return whether fits of kinds take long enough to be stopped."""
    is_short = name in ("margins, rbf columns", "margins, features later", "margins, pruned")
    return takes("checkpoint")(name) and not is_short


def unending(name):
    """Return a model of a kind whose fit does not end before it is stopped."""
    made = model(name)
    is_search = made.get_params().get("hyperparameters") == "learn" or "path" in name
    return made if is_search else made.set_params(tol=1e-9)


@kinds(watched)
def test_an_interrupt_is_raised_and_the_best_model_kept(name, reloaded):
    X, Y = data(name)
    stopped = unending(name).set_callbacks(press(3))
    with pytest.raises(KeyboardInterrupt, match="interrupted"):
        stopped.fit(X, Y)
    assert "interrupted" in ends(stopped)
    assert np.isfinite(scores(stopped, X)).all()
    assert mark(reloaded(stopped), X) == mark(stopped, X)
    kept = unending(name).set_callbacks(press(3))
    with config_context(on_interrupt="keep"), pytest.warns(ConvergenceWarning, match="interrupted") as caught:
        assert kept.fit(X, Y) is kept
    assert caught[0].filename == __file__
    assert mark(kept, X) == mark(stopped, X)


WORK = tuple(
    f"labelweave/{place}"
    for place in ("problems", "solvers", "hyperparameters", "estimators/binary_relevance")
)

OF_LABELS = "ridge of labels", "LIBLINEAR of labels", "squared hinge of labels"


def calls(work, pressed_at=None):
    """Count the calls of functions that solve, and send Ctrl-C in one of them."""
    n_calls = 0

    def count(frame, event, argument):
        nonlocal n_calls
        n_calls += event == "call" and any(place in frame.f_code.co_filename for place in WORK)
        if n_calls == pressed_at:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return n_calls


@kinds(lambda name: (takes("checkpoint")(name) and name != "graph, given") or name in OF_LABELS)
def test_an_interrupt_in_the_midst_of_any_call_keeps_a_model(name, reloaded):
    X, Y = data(name)
    in_one = {"n_jobs": 1} if takes("n_jobs")(name) else {}
    total = calls(lambda: fit(name, X, Y, **in_one))
    for share in (0.5, 0.65) if name in OF_LABELS else (0.3, 0.65):
        found = model(name, **in_one)
        with pytest.raises(KeyboardInterrupt, match="interrupted"):
            calls(lambda found=found: found.fit(X, Y), int(share * total))
        assert "interrupted" in ends(found) or name == "margins, learned"  # whose search was
        assert np.isfinite(scores(found, X)).all()
        assert mark(reloaded(found), X) == mark(found, X)


@kinds(lambda name: watched(name) and not name.startswith("tree"))  # which reports it for whole nodes
def test_a_callback_ends_a_fit(name):
    X, Y = data(name)
    with pytest.warns(ConvergenceWarning, match="interrupted") as caught:
        stopped = unending(name).set_callbacks(AtSubtask(2)).fit(X, Y)
    assert caught[0].filename == __file__
    assert "interrupted" in ends(stopped)
    assert len(stopped.predict(X)) == len(X)


@kinds(lambda name: takes("max_iter")(name) and name not in ("ridge of labels", "low rank, exact path"))
def test_a_fit_that_needs_more_rounds_says_so(name):
    X, Y = data(name)
    with pytest.warns(ConvergenceWarning, match="raise max_iter|limit of passes") as caught:
        found = model(name, tol=1e-12, max_iter=1).fit(X, Y)
    assert [warning.filename for warning in caught] == [__file__]
    assert (found.status_, found.converged_) == ("iteration_limit", False)
    assert found.n_iter_ == 1 or name.startswith("graph")  # whose passes are of rows and of working sets


@kinds(has("set_callbacks"))
def test_a_callback_hears_of_a_fit_and_changes_no_bit(name):
    X, Y = data(name)
    watch = Watch()
    found = fitted(model(name).set_callbacks(watch), X, Y)
    assert watch.calls == ["setup", "teardown"]
    assert mark(found, X) == mark(fit_once(name), X)
    root, *_, last = watch.seen[-1]
    assert root.parent is None
    np.testing.assert_array_equal(np.asarray(last.predict(X)), np.asarray(found.predict(X)))


@kinds(lambda name: watched(name) and not learns(name) and name != "tree")  # whose checks are of nodes
def test_callbacks_are_told_how_near_the_end_is(name):
    X, Y = data(name)
    watch = Watch()
    found = fitted(model(name).set_callbacks(watch), X, Y)
    steps = [seen[-1] for seen in watch.seen if seen[0].parent is not None and seen[-1] is not None]
    away = [np.abs(scores(step, X) - scores(found, X)).max() for step in steps]
    if away and not name.startswith("graph"):  # whose scores are differences of best labelings
        assert away[-1] < min(0.2, 0.5 * max(away)) or max(away) < 0.01
    told = [seen[3].get("gap") for seen in watch.seen if seen[0].task_name.startswith("duality gap")]
    known = [gap for gap in told if gap is not None]
    assert len(known) >= len(told) / 2  # steps that the fit of a part did not take have none
    for before, record in pairwise(found.trace_):
        assert (before.iteration, before.time) <= (record.iteration, record.time)
        if hasattr(record, "dual") and not np.isnan(record.dual):
            assert record.gap == (record.primal - record.dual) / abs(record.primal)
    _, rows, targets, metadata, _ = watch.seen[-1]
    assert rows is X
    assert targets is Y
    assert metadata.get("color") is None
    with pytest.raises(KeyError):
        metadata["color"]
    if known:  # of the same variables as the last, whose sums are computed again
        assert 0.9 * found.duality_gap_ <= known[-1] <= max(20 * found.duality_gap_, 1e-9)
        assert known[0] >= known[-1]
        assert metadata["gap"] == found.duality_gap_
        assert metadata["iteration"] == found.trace_[-1].iteration


@kinds(lambda name: takes("verbose")(name) and name != "zero-shot")  # whose y has attributes and classes
def test_the_scoring_monitor_scores_models(name):
    X, Y = data(name)
    Y = Y if np.ndim(Y) == 1 else np.nan_to_num(Y)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    monitor = ScoringMonitor(scoring="accuracy")
    found = model(name).set_callbacks(monitor)
    fitted(found, X, Y, sample_weight=weights)
    scored = {row["task_id_path"]: row["accuracy"] for row in monitor.get_logs().data}
    assert scored[(0,)] == pytest.approx(found.score(X, Y, sample_weight=weights))
    assert all(0 <= score <= 1 for score in scored.values())


@kinds()
def test_a_refused_fit_leaves_a_model_as_it_was(name):
    X, Y = data(name)
    made, expected = model(name), mark(fit_once(name), X)
    with pytest.raises(ValueError, match=r"59|inconsistent"):
        made.fit(X, Y[:-1])
    with pytest.raises(NotFittedError):
        made.predict(X)
    fitted(made, X, Y)
    with pytest.raises(ValueError, match=r"59|inconsistent"):
        made.fit(X, Y[:-1])
    assert mark(made, X) == expected
    if takes("class_weight")(name):  # which is refused after much has been read
        with pytest.raises(ValueError, match=r"'q'|3 classes|but y has 3"):
            made.set_params(class_weight={"q": 1}).fit(X, np.array(list("abc") * 20))
        assert mark(made, X) == expected


END_LATER = "graph, given", "graph, proximal", "graph, label sets", "graph, own features", "tuned, by label"


@kinds(lambda name: takes("warm_start")(name) and name not in END_LATER)
def test_a_warm_start_takes_no_more_rounds_and_ends_where_the_first_fit_did(name):
    X, Y = data(name)
    fine = {"tol": 1e-4} if name.startswith("margins") else {}
    found = fit(name, X, Y, warm_start=True, **fine)
    assert mark(found, X) == mark(fit(name, X, Y, **fine), X)
    cold, objective = found.n_iter_, found.trace_[-1].primal if hasattr(found.trace_[-1], "primal") else 0.0
    before, searched = scores(found, X), list(getattr(found, "learning_trace_", ()))
    fitted(found, X, Y)
    assert found.status_ in ("converged", "settled")
    if searched:  # which resumes from where it ended
        assert len(found.learning_trace_) <= len(searched)
        assert found.cross_validation_loss_ <= min(record.value for record in searched) * (1 + 1e-3)
    assert found.n_iter_ < max(cold, 6)
    if fine:
        np.testing.assert_allclose(scores(found, X), before, atol=0.1)
    if objective:
        assert found.trace_[-1].primal <= objective * 1.03


def weighs_a_penalty(name):
    return takes("warm_start")(name) and with_one_optimum(name) and not learns(name)


@kinds(weighs_a_penalty)
def test_a_warm_start_with_another_penalty_reaches_its_optimum(name):
    X, Y = data(name)
    found = fit(name, X, Y, warm_start=True, **exact(name))
    own = found.get_params()
    changed = {one: 1.3 * own[one] for one in ("C", "scale", "alpha") if one in own}
    cold = fit(name, X, Y, **exact(name) | changed)
    fitted(found.set_params(**changed), X, Y)
    if name.startswith("graph"):  # with missing labels there are many optima: none worse is found
        assert found.objective_ <= cold.objective_ * 1.03
    else:
        assert_same_scores(name, found, X, scores(cold, X))


def forgets(name):
    """Return whether a start from other rows has no effect: factors and learned parameters continue."""
    is_learned = learns(name) or name in ("graph, learned", "graph, measured")
    return takes("warm_start")(name) and not (name.startswith("low rank") or is_coupled(name) or is_learned)


@kinds(forgets)
def test_a_warm_start_with_other_rows_and_labels_begins_anew(name):
    X, Y = data(name)
    found = fitted(fit(name, X, Y, warm_start=True), X[:45], Y[:45])
    assert mark(found, X) == mark(fit(name, X[:45], Y[:45]), X)
    fitted(found, X[:, :4], Y[:, :3])
    assert mark(found, X[:, :4]) == mark(fit(name, X[:, :4], Y[:, :3]), X[:, :4])
    assert mark(fitted(found.set_params(warm_start=False), X, Y), X) == mark(fit_once(name), X)


def before(name):
    """Return another kind of the same class, or none."""
    others = [other for other in EVERY if type(EVERY[other]) is type(EVERY[name]) and other != name]
    return others[list(EVERY).index(name) % len(others)] if others else None


@kinds(lambda name: before(name) is not None)
def test_a_fit_knows_nothing_of_one_with_other_parameters(name):
    X, Y = data(name)
    found = copy.deepcopy(fit_once(before(name)))
    found.set_params(**clone(EVERY[name]).get_params(deep=False))
    assert mark(fitted(found, X, Y), X) == mark(fit_once(name), X)


@kinds(lambda name: name != "zero-shot")  # whose y has attributes and classes
def test_models_go_through_pipelines_and_searches(name):
    X, Y = complete(name) if np.ndim(data(name)[1]) == 2 else data(name)
    own = EVERY[name].get_params()
    numbers = [one for one, value in own.items() if type(value) is float or one.endswith(("cv", "rank"))]
    choice = {f"{type(EVERY[name]).__name__.lower()}__{numbers[-1]}": [own[numbers[-1]]] * 2}
    search = GridSearchCV(make_pipeline(StandardScaler(), model(name)), choice, cv=[(range(60), range(60))])
    fitted(search.set_params(error_score="raise"), X, Y)
    assert np.isfinite(search.best_score_)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(scores(search, X), scores(fit(name, rows, Y), rows), rtol=1e-6, atol=1e-9)


def test_a_learned_graph_of_more_labels_is_no_start():
    X, Y = data("graph, learned")
    found = fitted(fit("graph, learned", X, Y, warm_start=True), X, Y[:, :3])
    assert mark(found, X) == mark(fit("graph, learned", X, Y[:, :3]), X)


@kinds(takes("warm_start"))
def test_what_a_warm_start_needs_is_in_no_file(name, tmp_path):
    X, Y = data(name)
    fit(name, X, Y, warm_start=True).save(tmp_path / "warm")
    fit_once(name).save(tmp_path / "cold")
    sizes = [(tmp_path / path).stat().st_size for path in ("warm", "cold")]
    assert abs(sizes[0] - sizes[1]) < 100


def grows(name):
    """Return whether kinds accept later rows, of more labels too."""
    return has("partial_fit")(name) and with_one_optimum(name) and not is_coupled(name)


@kinds(grows)
def test_rows_and_labels_that_come_later_make_the_fit_to_all(name):
    X, Y = data(name)
    Y = np.nan_to_num(Y)
    hidden = Y.copy()
    hidden[:40, 3:] = np.nan
    whole = fit(name, X, hidden, **exact(name))
    for form in (np.asarray, sp.csr_array):
        found = model(name, **exact(name))
        for rows, width in ((slice(0, 25), 3), (slice(25, 40), 3), (slice(40, 60), 5)):
            found.partial_fit(form(X[rows]), form(Y[rows, :width]))
        assert found.classes_.tolist() == list(range(5))
        assert_same_scores(name, found, form(X), scores(whole, X))


@kinds(grows)
def test_rows_that_come_later_count_with_their_weights_and_names(name):
    X, Y = data(name)
    frame, weights = pd.DataFrame(np.nan_to_num(Y), columns=list("abcde")), np.repeat([1.0, 2.0], [40, 20])
    table = frame.copy()
    table.loc[:39, "e"] = np.nan
    table.loc[40:, "a"] = np.nan
    whole = fit(name, X, table, weights, **exact(name))
    found = model(name, **exact(name)).partial_fit(X[:40], frame.loc[:39, list("abcd")], weights[:40])
    found = pickle.loads(pickle.dumps(found)).partial_fit(X[40:], frame.loc[40:, list("ebcd")], weights[40:])
    assert list(found.predict(X).columns) == list("abcde")
    assert_same_scores(name, found, X, scores(whole, X))


@kinds(has("partial_fit"))
def test_parameters_that_make_no_sense_are_refused_with_rows_that_come_later(name):
    X, Y = data(name)
    found = model(name).partial_fit(X[:40], Y[:40])
    expected = mark(found, X)
    with pytest.raises(ValueError, match="'tol' parameter"):
        found.set_params(tol=-1.0).partial_fit(X[40:], Y[40:])
    assert mark(found, X) == expected


@pytest.mark.parametrize(
    ("name", "odd", "message"),
    [
        ("margins, coordinates", {"label_covariance": "learn"}, "label_covariance='learn' is learned"),
        ("low rank", {"hyperparameters": "learn", "loss": "log_loss"}, "hyperparameters='learn' is for"),
    ],
)
def test_parameters_that_exclude_each_other_are_refused_with_them(name, odd, message):
    X, Y = data(name)
    found = model(name).partial_fit(X[:40], Y[:40])
    with pytest.raises(ValueError, match=message):
        found.set_params(**odd).partial_fit(X[40:], Y[40:])


@kinds(grows)
def test_rows_that_are_refused_have_not_been_seen(name, tmp_path):
    X, Y = data(name)
    found = model(name, **exact(name)).partial_fit(X[:40], Y[:40])
    expected = mark(found, X)
    with pytest.raises(ValueError, match="features"):
        found.partial_fit(X[40:, :3], Y[40:])
    with pytest.raises(ValueError, match="has one class per row, but had many labels"):
        found.partial_fit(X[40:], np.arange(20) % 2)
    assert mark(found, X) == expected
    whole = fit(name, X, Y, **exact(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found.partial_fit(X[40:], Y[40:])
    assert_same_scores(name, found, X, scores(whole, X))
    found.save(tmp_path / "m.lw")
    whole.save(tmp_path / "whole")
    assert abs((tmp_path / "m.lw").stat().st_size - (tmp_path / "whole").stat().st_size) < 2000
    with pytest.warns(UserWarning, match="kept no rows"):
        labelweave.load(tmp_path / "m.lw").partial_fit(X, Y)
