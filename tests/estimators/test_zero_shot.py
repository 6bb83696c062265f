"""Classes known only by their attributes: the posterior, the temperature, the types of input, model files."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelweave import LabelCovariance, LabelMatrix, MaxMarginClassifier, ZeroShotClassifier
from labelweave.estimators.zero_shot.training_rows import (
    ClassFold,
    EveryClass,
    best_penalty,
    best_temperature,
    class_folds,
    majority_signs,
    row_classes,
)
from labelweave.metrics import harmonic_mean_accuracy

N_SEEN, N_UNSEEN, N_ATTRIBUTES = 16, 5, 12


def animals(seed=0, noise=1.5, rows_a_class=12):
    """Make classes of random attributes and rows that show them through noise."""
    rng = np.random.default_rng(seed)
    signatures = rng.integers(0, 2, (N_SEEN + N_UNSEEN, N_ATTRIBUTES))
    view = rng.normal(size=(N_ATTRIBUTES, 20))
    classes = np.repeat(np.arange(N_SEEN + N_UNSEEN), rows_a_class)
    X = (2 * signatures[classes] - 1) @ view + noise * rng.normal(size=(len(classes), 20)) * 3
    seen = classes < N_SEEN
    return X[seen], classes[seen], signatures, X[~seen], classes[~seen]


@pytest.fixture(scope="module")
def world():
    return animals()


@pytest.fixture(scope="module")
def fitted(world):
    X, classes, signatures, *_ = world
    model = ZeroShotClassifier(Ridge(10.0), signatures[N_SEEN:])
    return model.fit(X, signatures[classes], groups=classes)


def test_unseen_classes_and_their_attributes_are_found(world, fitted):
    _, _, signatures, X_test, truth = world
    assert fitted.score(X_test, truth - N_SEEN) > 0.6  # chance is 0.2
    wrong = (fitted.predict_attributes(X_test) != signatures[truth]).mean()
    alone = ((fitted.estimator_.predict(X_test) > 0.5) != signatures[truth]).mean()
    assert wrong < alone


def test_posterior_is_direct_attribute_prediction(world, fitted):
    """The product over attributes of p(y_l | x) / p(y_l), explicitly."""
    _, _, signatures, X_test, _ = world
    scores = fitted.estimator_.predict(X_test)
    training_odds = np.linspace(-1, 1, N_ATTRIBUTES)  # they cancel, whatever they are
    p = 1 / (1 + np.exp(-(2 * fitted.temperature_ * (scores - fitted.mean_scores_) + training_odds)))
    p_training = 1 / (1 + np.exp(-training_odds))
    posterior = np.ones((len(X_test), N_UNSEEN)) / N_UNSEEN
    for k, signature in enumerate(signatures[N_SEEN:]):
        for j, has in enumerate(signature):
            posterior[:, k] *= p[:, j] / p_training[j] if has else (1 - p[:, j]) / (1 - p_training[j])
    posterior /= posterior.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X_test), posterior, rtol=1e-6, atol=1e-12)


def test_attributes_minimise_expected_hamming_loss(world, fitted):
    _, _, signatures, X_test, _ = world
    posterior = fitted.predict_proba(X_test)
    cost_of_one = posterior @ (1 - signatures[N_SEEN:])
    cost_of_zero = posterior @ signatures[N_SEEN:]
    clear = abs(cost_of_one - cost_of_zero) > 1e-9
    predicted = fitted.predict_attributes(X_test)
    np.testing.assert_array_equal(predicted[clear], (cost_of_one < cost_of_zero)[clear])


def test_without_evidence_only_the_prior_speaks(world):
    X, classes, signatures, X_test, _ = world
    prior = np.array([5, 1, 1, 1, 1])
    model = ZeroShotClassifier(Ridge(), signatures[N_SEEN:], class_prior=prior, temperature=0.0)
    model.fit(X, signatures[classes])
    np.testing.assert_allclose(model.predict_proba(X_test), np.tile(prior / 9, (len(X_test), 1)))
    np.testing.assert_array_equal(model.predict_attributes(X_test)[0], signatures[N_SEEN])
    assert np.isnan(model.held_out_log_loss_)


def test_useless_features_get_a_low_temperature(world):
    _, classes, signatures, _, _ = world
    noise = np.random.default_rng(1).normal(size=(len(classes), 20))
    model = ZeroShotClassifier(Ridge(10.0), signatures[N_SEEN:]).fit(noise, signatures[classes])
    posterior = model.predict_proba(np.random.default_rng(2).normal(size=(50, 20)))
    assert abs(posterior - 1 / N_UNSEEN).max() < 0.2


def test_the_class_of_prior_zero_is_never_predicted(world):
    X, classes, signatures, X_test, _ = world
    model = ZeroShotClassifier(Ridge(), signatures[N_SEEN:], class_prior=[0, 1, 1, 1, 1])
    posterior = model.fit(X, signatures[classes]).predict_proba(X_test)
    assert (posterior[:, 0] == 0).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1)


def test_frames_bring_names_and_any_order_of_columns(world):
    X, classes, signatures, X_test, _ = world
    names = [f"has_{k}" for k in range(N_ATTRIBUTES)]
    unseen = pd.DataFrame(signatures[N_SEEN:], columns=names, index=list("abcde"))
    attributes = pd.DataFrame(signatures[classes], columns=names)
    model = ZeroShotClassifier(MaxMarginClassifier(C=0.1), unseen[names[::-1]])
    model.fit(X, attributes, groups=classes)
    plain = ZeroShotClassifier(MaxMarginClassifier(C=0.1), signatures[N_SEEN:])
    plain.fit(X, signatures[classes], groups=classes)
    np.testing.assert_allclose(model.predict_proba(X_test), plain.predict_proba(X_test))
    assert set(model.predict(X_test)) <= set("abcde")
    predicted = model.predict_attributes(pd.DataFrame(X_test, index=range(7, 7 + len(X_test))))
    assert list(predicted.columns) == names
    assert predicted.index[0] == 7


@pytest.mark.slow
@pytest.mark.parametrize("form", ["signs", "sparse", "label matrix", "list"])
def test_every_form_of_attributes_gives_the_same_model(world, form):
    X, classes, signatures, X_test, _ = world
    y, unseen = signatures[classes], signatures[N_SEEN:]
    forms = {
        "signs": (2 * y - 1, 2 * unseen - 1),
        "sparse": (sp.csr_array(y), sp.csr_array(unseen)),
        "label matrix": (LabelMatrix.from_any(y), LabelMatrix.from_any(unseen)),
        "list": (y.tolist(), unseen.tolist()),
    }
    expected = ZeroShotClassifier(MaxMarginClassifier(C=0.1), unseen).fit(X, y)
    model = ZeroShotClassifier(MaxMarginClassifier(C=0.1), forms[form][1]).fit(X, forms[form][0])
    np.testing.assert_allclose(model.predict_proba(X_test), expected.predict_proba(X_test))
    predicted = model.predict_attributes(X_test)
    dense = predicted.toarray() if sp.issparse(predicted) else predicted
    np.testing.assert_array_equal(dense > 0, expected.predict_attributes(X_test) > 0)
    assert dense.min() == (-1 if form == "signs" else 0)


def test_missing_attributes_and_unknown_signature_entries(world):
    X, classes, signatures, X_test, truth = world
    rng = np.random.default_rng(3)
    y = np.where(rng.random(signatures[classes].shape) < 0.2, np.nan, signatures[classes])
    unseen = signatures[N_SEEN:].astype(float)
    unseen[0, 0] = np.nan
    model = ZeroShotClassifier(MaxMarginClassifier(C=0.1), unseen).fit(X, y, groups=classes)
    assert model.score(X_test, truth - N_SEEN) > 0.5
    assert model.scorer_.signs[0, 0] == 0


def test_coupling_sets_the_covariance_of_the_signatures(world):
    X, classes, signatures, _, _ = world
    prior = np.array([1, 2, 3, 4, 5]) / 15
    base = make_pipeline(StandardScaler(), MaxMarginClassifier(C=0.1, tol=0.02))
    model = ZeroShotClassifier(base, signatures[N_SEEN:], class_prior=prior, couple_attributes=True)
    model.fit(X, signatures[classes], groups=classes)
    expected = LabelCovariance.from_signatures(signatures[N_SEEN:], prior).to_dense()
    used = model.estimator_[-1].label_covariance
    np.testing.assert_allclose(used.to_dense(), expected)
    assert base[-1].label_covariance is None


def test_what_makes_scores_is_kept_as_a_scorer(world, fitted):
    X_test = world[3]
    scorer = fitted.scorer_
    assert scorer.estimator_ is fitted.estimator_
    assert scorer.temperature_ == fitted.temperature_
    scores = scorer.scores(X_test)
    expected = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(fitted.predict_log_proba(X_test), expected, atol=1e-9)


def test_foreign_estimators_cannot_be_saved(fitted, tmp_path):
    with pytest.raises(TypeError, match="Ridge cannot be stored"):
        fitted.save(tmp_path / "ridge.lw")


def test_held_out_loss_tells_a_good_kernel_width_from_a_bad_one(world):
    X, classes, signatures, _, _ = world
    losses = [
        ZeroShotClassifier(KernelRidge(alpha=1.0, kernel="rbf", gamma=gamma), signatures[N_SEEN:])
        .fit(X, signatures[classes])
        .held_out_log_loss_
        for gamma in (1e-3, 10.0)
    ]
    assert losses[0] < losses[1]


@given(
    n_classes=st.integers(4, 12), n_folds=st.integers(2, 3), seed=st.integers(0, 99), data=st.data()
)  # fmt: skip
@settings(max_examples=25)
def test_every_class_is_held_out_once(n_classes, n_folds, seed, data):
    if n_classes < 2 * n_folds:
        n_folds = 2
    extra = data.draw(st.lists(st.integers(0, n_classes - 1), max_size=20))
    codes = np.array([*range(n_classes), *extra])
    signatures = np.random.default_rng(seed).integers(0, 2, (n_classes, 3))
    table = majority_signs(LabelMatrix.from_any(signatures[codes]), codes, np.ones(len(codes)))
    folds = list(class_folds(table, codes, np.ones(len(codes)), n_folds, seed))
    np.testing.assert_array_equal(np.sort(np.concatenate([f.held_out for f in folds])), np.arange(len(codes)))
    for fold in folds:
        assert not set(codes[fold.training]) & set(codes[fold.held_out])
        np.testing.assert_array_equal(fold.signs[fold.truth] > 0, signatures[codes[fold.held_out]] == 1)
        np.testing.assert_allclose(fold.prior, np.bincount(fold.truth) / len(fold.truth))


def _fold(prior, truth):
    nothing = np.zeros(0, int)
    return ClassFold(nothing, nothing, np.zeros((len(prior), 0)), prior, truth, np.ones(len(truth)))


def test_temperature_is_the_maximum_of_the_likelihood():
    rng = np.random.default_rng(0)
    evidence, prior = 40 * rng.normal(size=(4000, 3)), np.array([0.5, 0.3, 0.2])
    true = 0.02
    truth = np.argmax(np.log(prior) + true * evidence + rng.gumbel(size=evidence.shape), axis=1)
    folds = [_fold(prior, truth[:1500]), _fold(prior, truth[1500:])]
    found, loss = best_temperature([evidence[:1500], evidence[1500:]], folds)
    assert found == pytest.approx(true, rel=0.1)
    assert loss < best_temperature([np.zeros((4000, 3))], [_fold(prior, truth)])[1]


def test_evidence_against_the_truth_gets_temperature_zero():
    evidence = np.eye(2)[[0, 1, 0, 1]]
    found, loss = best_temperature([evidence], [_fold(np.array([0.5, 0.5]), np.array([1, 0, 1, 0]))])
    assert found == 0.0
    assert loss == pytest.approx(np.log(2))


def every_class(world):
    """Return rows and classes of all animals, and a frame of all signatures."""
    X, classes, signatures, X_test, truth = world
    names = np.array([f"animal_{k:02d}" for k in range(N_SEEN + N_UNSEEN)])
    frame = pd.DataFrame(signatures, index=names).add_prefix("has_")
    return X, names[classes], frame, X_test, names[truth]


def test_classes_stand_for_their_attributes(world):
    X, y, frame, X_test, _ = every_class(world)
    options = {"temperature": 1.0, "seen_penalty": 0.5}
    model = ZeroShotClassifier(Ridge(10.0), frame, **options).fit(X, y)
    table = ZeroShotClassifier(Ridge(10.0), frame, **options).fit(X, frame.loc[y], groups=y)
    np.testing.assert_array_equal(model.predict_log_proba(X_test), table.predict_log_proba(X_test))
    assert list(model.classes_[model.seen_]) == sorted(set(y))
    assert list(model.predict_attributes(X_test).columns) == list(frame.columns)
    free = ZeroShotClassifier(Ridge(10.0), frame, temperature=1.0, seen_penalty=0.0).fit(X, y)
    lowered = free.scorer_.scores(X_test) - model.scorer_.scores(X_test)
    np.testing.assert_allclose(lowered, np.tile(0.5 * model.seen_, (len(X_test), 1)), atol=1e-9)


def test_seen_and_unseen_classes_are_told_apart_together(world):
    """Without a penalty a model prefers the seen classes; that of held-out rows helps."""
    X, y, frame, X_test, truth = every_class(world)
    rng = np.random.default_rng(0)
    kept = rng.random(len(X)) < 0.7
    mixed_X, mixed_y = np.vstack([X[~kept], X_test]), np.concatenate([y[~kept], truth])

    def measure(**options):
        model = ZeroShotClassifier(Ridge(10.0), frame, **options).fit(X[kept], y[kept])
        return harmonic_mean_accuracy(mixed_y, model.predict(mixed_X), model.classes_[model.seen_]), model

    (without, _), (found, model) = measure(seen_penalty=0.0), measure()
    assert model.seen_penalty_ > 0
    assert found > without + 0.02


def test_the_penalty_is_the_best_of_all_penalties():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 6)) + 1.5 * (np.arange(6) < 3)
    truth = np.where(rng.random(200) < 0.5, scores.argmax(axis=1), rng.integers(0, 6, 200))
    fold = EveryClass(np.arange(200), np.zeros((6, 0)), truth, np.ones(200), np.arange(6) < 3)
    found = best_penalty([scores], [fold])

    def harmonic(penalty):
        predicted = (scores - penalty * fold.is_seen).argmax(axis=1)
        return harmonic_mean_accuracy(truth, predicted, [0, 1, 2])

    assert harmonic(found) >= max(harmonic(penalty) for penalty in np.linspace(-5, 5, 2001)) - 1e-12


def test_numbers_of_rows_and_of_signatures_are_not_mixed_up(world, fitted):
    """Groups number the training classes, unnamed signatures the others: none of these is seen."""
    assert not fitted.seen_.any()


def test_groups_that_are_floats_name_classes_of_an_integer_index(world):
    X, classes, signatures, *_ = world
    model = ZeroShotClassifier(Ridge(10.0), pd.DataFrame(signatures), cv=2)
    model.fit(X, pd.DataFrame(signatures[classes]), groups=classes.astype(float))
    np.testing.assert_array_equal(model.seen_, np.arange(len(signatures)) < N_SEEN)
    found = model.predict_attributes(X.tolist())
    np.testing.assert_array_equal(found, model.predict_attributes(X))


def test_without_signatures_classes_are_their_own_attributes(world):
    X, y, *_ = every_class(world)
    model = ZeroShotClassifier().fit(X, y)
    assert model.score(X, y) > 0.8  # chance is 0.06
    assert model.seen_.all()
    assert model.seen_penalty_ == 0.0
    assert np.isfinite(model.held_out_log_loss_)


def test_rows_of_one_class_share_a_number():
    labels = LabelMatrix.from_any([[1, 0], [0, 1], [1, 0]])
    assert row_classes(labels, None)[0] == row_classes(labels, None)[2]
    np.testing.assert_array_equal(row_classes(labels, ["b", "a", "b"]), [1, 0, 1])


def test_whole_weights_are_rows_that_come_again(world):
    X, classes, signatures, *_ = world
    times = np.random.default_rng(0).integers(0, 3, len(X))
    again = np.repeat(np.arange(len(X)), times)
    model = ZeroShotClassifier(Ridge(), signatures[N_SEEN:], temperature=0.7)
    weighted = clone(model).fit(X, signatures[classes], sample_weight=times)
    repeated = clone(model).fit(X[again], signatures[classes[again]])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-8)


def test_weights_count_in_what_is_chosen(world):
    X, classes, signatures, *_ = world
    model = ZeroShotClassifier(Ridge(), signatures[N_SEEN:])
    even = clone(model).fit(X, signatures[classes])
    same = clone(model).fit(X, signatures[classes], sample_weight=np.full(len(X), 3.0))
    assert same.temperature_ == pytest.approx(even.temperature_, rel=0.05)
    skewed = np.where(classes == classes[0], 50.0, 1.0)
    other = clone(model).fit(X, signatures[classes], sample_weight=skewed)
    assert abs(other.temperature_ / even.temperature_ - 1) > 1e-3
    zero = (classes != classes[0]).astype(float)
    kept = zero > 0
    omitted = clone(model).fit(X, signatures[classes], sample_weight=zero)
    without = clone(model).fit(X[kept], signatures[classes[kept]])
    np.testing.assert_allclose(omitted.predict_proba(X), without.predict_proba(X), atol=1e-12)
    with pytest.raises(ValueError, match=r"KNeighborsRegressor\.fit does not support it"):
        ZeroShotClassifier(KNeighborsRegressor(), signatures[N_SEEN:]).fit(
            X, signatures[classes], sample_weight=skewed
        )


def test_a_prior_of_named_classes_goes_by_name(world):
    X, classes, signatures, X_test, _ = world
    names = [f"class {number}" for number in range(N_UNSEEN)]
    frame = pd.DataFrame(signatures[N_SEEN:], index=names)
    prior = pd.Series([5.0, 1.0, 1.0, 2.0, 1.0], index=names)
    model = ZeroShotClassifier(Ridge(), frame, class_prior=prior[::-1], temperature=0.0)
    posterior = model.fit(X, pd.DataFrame(signatures[classes])).predict_proba(X_test)
    np.testing.assert_allclose(posterior[0], prior / 10)
    with pytest.raises(ValueError, match="'class 0' is in signatures but not in class_prior"):
        model.set_params(class_prior=prior[1:]).fit(X, pd.DataFrame(signatures[classes]))


def test_how_classes_are_written_does_not_matter(world, reloaded):
    X, classes, signatures, X_test, _ = world
    frame = pd.DataFrame(signatures)
    frame.index = frame.index.astype(object)
    model = ZeroShotClassifier(MaxMarginClassifier(C=0.1), frame, temperature=1.0, seen_penalty=0.0)
    expected = model.fit(X, classes).predict(X_test)
    assert expected.dtype.kind == "i"
    np.testing.assert_array_equal(model.fit(X, classes.astype(float)).predict(X_test), expected)
    np.testing.assert_array_equal(reloaded(model).predict(X_test), expected)


@pytest.mark.parametrize("make", [list, pd.Series])
def test_attributes_may_be_lists_of_tags(world, make):
    X, y, frame, X_test, _ = every_class(world)
    tags = make([[name for name in frame.columns if frame.at[one, name]] for one in y])
    model = ZeroShotClassifier(MaxMarginClassifier(C=0.1), frame)
    found = model.fit(X, tags, groups=y).predict_proba(X_test)
    np.testing.assert_allclose(found, model.fit(X, y).predict_proba(X_test), atol=0.01)


@pytest.mark.parametrize("of_unseen", [100.0, 0.01])
def test_the_chosen_penalty_makes_up_for_the_prior_of_unseen_classes(world, of_unseen):
    X, y, frame, X_test, _ = every_class(world)
    model = ZeroShotClassifier(MaxMarginClassifier(C=0.1), frame, temperature=1.0).fit(X, y)
    prior = np.where(model.seen_, 1.0, of_unseen)
    other = clone(model).set_params(class_prior=prior).fit(X, y)
    assert other.seen_penalty_ == pytest.approx(model.seen_penalty_ - np.log(of_unseen))
    np.testing.assert_allclose(other.predict_proba(X_test), model.predict_proba(X_test), atol=1e-12)
