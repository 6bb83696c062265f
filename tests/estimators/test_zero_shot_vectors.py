"""Real-valued signatures: the Gaussian posterior, the prior of classes, input, model files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from labelweave import LowRankClassifier, MaxMarginClassifier, ZeroShotClassifier
from labelweave.metrics import harmonic_mean_accuracy
from reference import zero_shot_twin as twin

N_SEEN, N_UNSEEN, N_COORDINATES, N_FEATURES = 12, 6, 5, 7


def words(seed=0, noise=2.0, rows_a_class=8, spread=0.6):
    """Draw classes with vectors of unequal lengths, and rows that show them through noise."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(spread * rng.normal(size=(N_SEEN + N_UNSEEN, 1)))
    table = rng.normal(size=(N_SEEN + N_UNSEEN, N_COORDINATES)) * lengths
    classes = np.repeat(np.arange(N_SEEN + N_UNSEEN), rows_a_class)
    view = rng.normal(size=(N_COORDINATES, N_FEATURES))
    X = table[classes] @ view + noise * rng.normal(size=(len(classes), N_FEATURES))
    seen = classes < N_SEEN
    return X[seen], classes[seen], pd.DataFrame(table), X[~seen], classes[~seen]


def of_unseen(seen=N_SEEN, unseen=N_UNSEEN):
    return np.repeat([0.0, 1.0], [seen, unseen])


def _low_rank(penalty):
    return LowRankClassifier(1.0, alpha=penalty, penalty="ridge", tol=1e-12, max_iter=2000)


@pytest.mark.parametrize("couple", [False, True])
def test_the_posterior_is_that_of_the_slow_twin(couple):
    X, y, frame, X_test, _ = words(noise=3.0)
    table, penalty, cv = frame.to_numpy(), 5.0, 3
    model = ZeroShotClassifier(
        _low_rank(penalty), table, class_prior=of_unseen(), couple_attributes=couple, cv=cv, seen_penalty=0.0
    ).fit(X, y)

    def predict(X, classes, X_new):
        if couple:
            return twin.couple(X, classes, X_new, table, penalty)
        found, moved = twin.vectors(X, classes, X_new, table, penalty)
        return found @ moved.T, np.square(moved).sum(axis=1)

    parts = [np.sort(part) for part in np.array_split(np.random.default_rng(0).permutation(N_SEEN), cv)]
    rho, t = twin.shrinkage_and_temperature(twin.held_out(predict, X, y, parts))
    assert model.shrinkage_ == pytest.approx(rho, rel=1e-4)
    assert model.temperature_ == pytest.approx(t, rel=1e-3)
    products, squares = predict(X, y, X_test)
    expected = twin.posterior(model.temperature_, rho, products, squares, of_unseen())
    np.testing.assert_allclose(model.predict_proba(X_test), expected, atol=1e-5)
    np.testing.assert_allclose(model.expected_attributes(X_test), expected @ table, atol=1e-4)
    np.testing.assert_array_equal(model.predict_attributes(X_test), model.expected_attributes(X_test))


def test_a_classifier_of_the_squared_loss_is_the_regression():
    """A constant feature 1 is penalized, as the regression's is here."""
    X, y, frame, X_test, _ = words()
    constant, new = np.c_[X, np.ones(len(X))], np.c_[X_test, np.ones(len(X_test))]
    regression = ZeroShotClassifier(Ridge(2.0, fit_intercept=False), frame - frame.loc[y].mean(), cv=2)
    classifier = ZeroShotClassifier(_low_rank(2.0).set_params(fit_intercept=False), frame, cv=2)
    options = {"temperature": 0.5, "seen_penalty": 0.0}
    for model in (regression, classifier):
        model.set_params(**options).fit(constant, y)
    found = classifier.predict_log_proba(new) - regression.predict_log_proba(new)
    lengths = (classifier._lengths - regression._lengths) - (classifier._lengths - regression._lengths).mean()
    np.testing.assert_allclose(
        found - found.mean(axis=1, keepdims=True), -np.tile(lengths, (len(new), 1)), atol=1e-6
    )


def test_vectors_pay_over_their_signs_and_scaled_over_nearest():
    """Means of ten draws: right unseen classes by signs, by the nearest vector, and by the model."""
    shares = np.zeros((10, 3))
    for seed, row in enumerate(shares):
        X, y, frame, X_test, truth = words(seed, noise=3.0)
        signs = (frame > 0).astype(float)
        prior = of_unseen()
        for place, table in enumerate((signs, frame)):
            model = ZeroShotClassifier(Ridge(10.0), table, class_prior=prior, seen_penalty=0.0)
            row[2 * place] = np.mean(model.fit(X, y).predict(X_test) == truth)
        found = Ridge(10.0).fit(X, frame.loc[y]).predict(X_test)
        unseen = frame.to_numpy()[N_SEEN:]
        distances = np.square(found[:, None] - unseen).sum(axis=2)
        row[1] = np.mean(distances.argmin(axis=1) + N_SEEN == truth)
    by_signs, nearest, scaled = shares.mean(axis=0)
    assert scaled > by_signs + 0.05
    assert scaled > nearest + 0.05


def test_seen_and_unseen_classes_are_told_apart_together():
    X, y, frame, X_test, truth = words()
    kept = np.random.default_rng(0).random(len(X)) < 0.7
    mixed, names = np.vstack([X[~kept], X_test]), np.concatenate([y[~kept], truth])
    found = [
        ZeroShotClassifier(None, frame, cv=3, seen_penalty=penalty).fit(X[kept], y[kept])
        for penalty in (0.0, "held_out")
    ]
    plain, chosen = (
        harmonic_mean_accuracy(names, one.predict(mixed), one.classes_[one.seen_]) for one in found
    )
    assert found[1].seen_penalty_ > 0
    assert chosen >= plain


def test_counts_are_vectors_and_nothing_is_known_before_a_fit():
    X, y, frame, X_test, _ = words()
    counts = (3 * frame).round().astype(int)
    model = ZeroShotClassifier(None, counts, class_prior=of_unseen(), cv=2)
    for method in (model.expected_attributes, model.predict_attributes):
        with pytest.raises(NotFittedError):
            method(X_test)
    np.testing.assert_allclose(
        model.fit(X, y).expected_attributes(X_test).shape, (len(X_test), N_COORDINATES)
    )


def test_two_training_classes_a_part_have_one_score():
    X, y, frame, X_test, truth = words(noise=0.5)
    few = y < 4
    model = ZeroShotClassifier(MaxMarginClassifier(), frame, class_prior=of_unseen(), cv=2, seen_penalty=0.0)
    posterior = model.fit(X[few], y[few]).predict_proba(X_test)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    assert model.score(X_test, truth) > 1 / N_UNSEEN
