"""Scaling of features: the effect of each kind on dense and sparse rows, in models and their files."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import QuantileTransformer, normalize

import labelweave as lw
from drawn import draw_labels
from labelweave.features import FeatureMatrix, FeatureScaling
from labelweave.problems.hyperparameters.out_of_fold import oof_loss

MODELS = [
    lw.MaxMarginClassifier(),
    lw.MaxMarginClassifier(kernel="rbf"),
    lw.MaxMarginClassifier(kernel=["linear", "rbf"]),
    lw.KernelLogisticClassifier(hyperparameters="fixed"),
    lw.LowRankClassifier(2),
    lw.LowRankClassifier(lw.RankSearch((1, 2), 2)),
    lw.LabelGraphClassifier(),
]


@pytest.fixture
def table():
    """Return rows whose columns have very different sizes, one of them heavy-tailed, and their labels."""
    Z, Y = draw_labels(90, 5, 3, noise=0.1, above=0)
    X = Z * [1e-3, 1.0, 1e4, 1.0, 1.0] + [0, 5, 0, 0, 0]
    X[:, 3] = np.exp(3 * X[:, 3])
    return X, Y


def scaled(kind, X):
    features = FeatureMatrix(X)
    return FeatureScaling.fit(kind, features)(features).data


def test_standard_columns_have_mean_zero_equal_deviations_and_rows_of_length_one_on_average(table):
    Z = scaled("standard", table[0])
    assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    assert_allclose(Z.std(axis=0), np.sqrt(1 / 5))
    assert_allclose(np.square(Z).sum(axis=1).mean(), 1)


def test_quantile_columns_are_those_of_scikit_learn_but_for_moving_and_one_factor(table):
    X = table[0]
    expected = QuantileTransformer(n_quantiles=len(X), output_distribution="normal").fit_transform(X)
    expected -= expected.mean(axis=0)
    assert_allclose(
        scaled("quantile", X), expected / np.sqrt(np.square(expected).sum(axis=1).mean()), atol=1e-12
    )


def _columns_of_every_kind(n):
    draw = np.random.default_rng(n)
    X = draw.normal(size=(n, 40))
    X[:, 0] = 3.0  # constant
    X[:, 1] = np.round(X[:, 1])  # ties
    X[:, 2] = X[:, 2] > 0
    X[:, 3] *= 100 * np.nextafter(0.0, 1.0)  # subnormal
    X[:, 4] = np.exp(20 * X[:, 4])
    X[:, 5] = 1e12 + np.round(X[:, 5])
    X[:, 6] = 1e30 * np.sign(X[:, 6])
    X[:, 7] = np.where(X[:, 7] > 0, X[:, 7], 0.0)
    return X


def _by_scikit_learn(X, quantiles):
    """Map columns by scikit-learn itself, those of a range below 1 brought above it."""
    lowest, highest = quantiles[0], quantiles[-1]
    is_small = (highest > lowest) & (highest - lowest < 1)
    unit = np.exp2(np.floor(np.log2(np.where(is_small, highest - lowest, 1.0))))
    peer = QuantileTransformer(output_distribution="normal", n_quantiles=len(quantiles))
    peer.quantiles_, peer.references_ = quantiles / unit, np.linspace(0, 1, len(quantiles))
    peer.n_features_in_ = quantiles.shape[1]
    return peer.transform(np.clip(X.astype(np.float64), lowest, highest) / unit)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 3, 90, 1500])
def test_quantiles_of_all_columns_at_once_are_those_of_each(n, dtype):
    X = _columns_of_every_kind(n).astype(dtype)
    quantiles = FeatureScaling.fit("quantile", FeatureMatrix(X)).quantiles
    scaling = FeatureScaling("quantile", np.zeros(40), np.ones(40), quantiles)
    others = 2 * np.random.default_rng(0).normal(size=(50, 40))
    rows = np.concatenate([X[:1100], others.astype(dtype), quantiles[:99].astype(dtype)])
    expected = _by_scikit_learn(rows, quantiles).astype(dtype)
    found = scaling(FeatureMatrix(rows)).data
    # other compilers may fuse the products and sums of NumPy's interp, and far out normal quantiles are steep
    assert_allclose(found, expected, rtol=0, atol=1e-10 if dtype == np.float64 else 1e-6)
    one_by_one = np.concatenate([scaling(FeatureMatrix(row[None])).data for row in rows[::200]])
    assert_array_equal(one_by_one, found[::200])


def test_quantiles_take_no_rows_and_subnormal_steps_and_refuse_missing_numbers():
    X = _columns_of_every_kind(90)
    scaling = FeatureScaling.fit("quantile", FeatureMatrix(X))
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        scaling(FeatureMatrix._unchecked(np.where(np.eye(3, 40, 1), np.nan, X[:3])[:2]))
    assert scaling(FeatureMatrix(X[:0])).data.shape == (0, 40)
    least = np.nextafter(0.0, 1.0)
    steps = np.array([[0.0], [9 * least], [5.0]])  # a slope of infinity, of which scikit-learn makes NaN
    between = FeatureScaling("quantile", np.zeros(1), np.ones(1), steps)(FeatureMatrix([[0.0], [3 * least]]))
    assert np.isfinite(between.data).all()
    assert (between.data <= 0).all()


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1e-3, 1e12])
def test_quantiles_do_not_see_the_size_of_columns(table, size):
    X = table[0] / np.ptp(table[0], axis=0)
    expected = scaled("quantile", X)
    scaling = FeatureScaling.fit("quantile", FeatureMatrix(X * size))
    assert_allclose(scaling(FeatureMatrix(X * size)).data, expected, atol=1e-12)
    beyond = scaling(FeatureMatrix(np.tile([[-1e300], [1e300]], 5))).data
    assert_allclose(beyond, [expected.min(axis=0), expected.max(axis=0)])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_rows_of_unit_length(table, make):
    X = table[0].copy()
    X[3] = 0
    Z = scaled("unit", make(X))
    assert_allclose(Z.toarray() if sp.issparse(Z) else Z, normalize(X))


def test_sparse_columns_are_divided_but_not_moved(table):
    X = sp.csr_array(np.where(np.abs(table[0]) > 1, table[0], 0))
    Z = scaled("standard", X)
    assert Z.nnz == X.nnz
    assert_allclose(np.square(Z.toarray()).sum(axis=1).mean(), 1)
    size = np.square(Z.toarray()).sum(axis=0)
    assert_allclose(size[size > 0], size.max())


@pytest.mark.parametrize("kind", ["standard", "quantile", "unit"])
def test_constant_columns_and_single_rows_give_finite_numbers(kind):
    for X in (np.full((6, 2), 3.3), np.ones((1, 3)), np.zeros((4, 1))):
        assert np.isfinite(scaled(kind, X)).all()


def test_single_precision_stays(table):
    assert scaled("standard", table[0].astype(np.float32)).dtype == np.float32


def test_out_of_fold_loss_is_what_refits_without_each_row_give(table):
    X, Y = scaled("standard", table[0])[:20], 2.0 * table[1][:20] - 1
    gram, losses = X @ X.T, []
    centered = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    for penalty in np.logspace(-5, 1, 13) * np.linalg.eigvalsh(centered)[-1]:
        total = 0.0
        for row in range(20):
            rest = np.delete(np.arange(20), row)
            # with an intercept that is not penalized: solve the bordered system
            system = np.block(
                [
                    [gram[np.ix_(rest, rest)] + penalty * np.eye(19), np.ones((19, 1))],
                    [np.ones((1, 19)), np.zeros((1, 1))],
                ]
            )
            solved = np.linalg.solve(system, np.vstack([Y[rest], np.zeros((1, 3))]))
            total += np.square(gram[row, rest] @ solved[:-1] + solved[-1] - Y[row]).sum()
        losses.append(total)
    expected = min(losses) / np.square(Y - Y.mean(axis=0)).sum()
    assert_allclose(oof_loss(gram, Y), expected, rtol=1e-6)


def test_missing_targets_add_no_loss():
    gram = np.eye(4)
    targets = np.array([[1.0], [-1.0], [np.nan], [np.nan]])
    assert np.isfinite(oof_loss(gram, targets))
    assert oof_loss(gram, np.full((4, 2), np.nan)) == 1.0


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("scaling", ["auto", "standard", "quantile", "unit"])
def test_a_model_that_scales_is_one_of_scaled_rows_and_so_is_its_file(model, scaling, table, reloaded):
    X, Y = table
    model.set_params(scaling=scaling).fit(X, Y)
    other = type(model)(**model.get_params(deep=False)).set_params(scaling="none")
    other.fit(model.scaling_(FeatureMatrix(X)).data, Y)
    scores = model.decision_function(X[:9])
    assert_array_equal(scores, other.decision_function(model.scaling_(FeatureMatrix(X[:9])).data))
    assert_array_equal(reloaded(model).decision_function(X[:9]), scores)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_sparse_rows_choose_between_unit_length_and_as_they_are(model, table):
    X, Y = sp.csr_array(np.abs(table[0]) * [0, 1, 0, 0, 1]), table[1].astype(float)
    Y[::7, 0] = np.nan
    model.set_params(scaling="auto").fit(X, Y)
    assert model.scaling_ is None or model.scaling_.kind == "unit"
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("model", MODELS[:4], ids=str)
def test_rows_without_weight_and_missing_labels_do_not_matter(model, table):
    X, Y = table
    wild = X.copy()
    wild[:5] *= 1e3
    weights = np.r_[np.zeros(5), np.ones(85)]
    fits = [
        model.set_params(scaling="auto").fit(rows, Y, sample_weight=weights).scaling_ for rows in (X, wild)
    ]
    assert_array_equal(fits[0].factor, fits[1].factor)


def test_one_class_a_row(table):
    X, names = table[0], np.array(["a", "b"])[table[1][:, 0]]
    for model in (lw.KernelLogisticClassifier(scaling="auto"), lw.MaxMarginClassifier(scaling="auto")):
        assert model.fit(X, names).score(X, names) > 0.9


def test_a_kernel_that_tells_no_rows_apart_warns(table):
    X, Y = table
    with pytest.warns(UserWarning, match="almost constant.*scaling='auto'"):
        lw.MaxMarginClassifier(kernel="rbf").fit(X**5, Y)
    with pytest.warns(UserWarning, match="almost the identity"):
        lw.MaxMarginClassifier(kernel="laplacian", gamma="auto").fit(100 * X**3, Y)


def test_partial_fits_keep_the_scaling_of_the_first(table):
    X, Y = table
    model = lw.MaxMarginClassifier(scaling="standard", tol=1e-8).partial_fit(X[:50], Y[:50])
    first = model.scaling_
    model.partial_fit(X[50:], Y[50:])
    assert_array_equal(model.scaling_.factor, first.factor)
    once = lw.MaxMarginClassifier(tol=1e-8).fit(first(FeatureMatrix(X)).data, Y)
    assert_allclose(
        model.decision_function(X), once.decision_function(first(FeatureMatrix(X)).data), atol=1e-2
    )


def test_zero_shot_models_take_a_classifier_that_scales(table):
    X, Y = table
    signatures, classes = np.unique(Y, axis=0, return_inverse=True)
    model = lw.ZeroShotClassifier(lw.MaxMarginClassifier(scaling="auto"), signatures=signatures, cv=3)
    assert model.fit(X, Y, groups=classes).score(X, classes) > 0.5
