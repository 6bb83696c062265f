import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from labelweave.features import (
    ARDKernel,
    CallableKernel,
    ConstantKernel,
    CosineKernel,
    FeatureMatrix,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    ScaledKernel,
    SumKernel,
    make_kernel,
)
from labelweave.features.feature_matrix import Moments
from labelweave.model_files import load_object, save_object

_NUMBERS = st.sampled_from([0.0, 1.0, -2.5, 1e-3, 40.0])


@st.composite
def _two_tables(draw):
    m, n, d = (draw(st.integers(1, 6)) for _ in range(3))
    return tuple(draw(hnp.arrays(np.float64, (size, d), elements=_NUMBERS)) for size in (m, n))


@pytest.mark.slow
@given(_two_tables(), st.sampled_from([1e-3, 0.1, 5.0]), st.integers(1, 7), st.sampled_from([0.0, 0.7]))
def test_values_are_those_of_scikit_learn(tables, gamma, degree, coef0):
    peers = [
        (LinearKernel(), pairwise.linear_kernel(*tables)),
        (CosineKernel(), pairwise.cosine_similarity(*tables)),
        (RBFKernel(gamma), pairwise.rbf_kernel(*tables, gamma=gamma)),
        (LaplacianKernel(gamma), pairwise.laplacian_kernel(*tables, gamma=gamma)),
        (
            PolynomialKernel(degree, gamma, coef0),
            pairwise.polynomial_kernel(*tables, degree=degree, gamma=gamma, coef0=coef0),
        ),
    ]
    for kernel, expected in peers:
        for hold in (np.asarray, sp.csr_array):
            block = kernel.block(*(FeatureMatrix(hold(table)) for table in tables))
            np.testing.assert_allclose(block, expected, rtol=1e-8, atol=1e-12)


def _exact_rbf(rows, columns, gamma):
    apart = rows.astype(np.float64)[:, None, :] - columns.astype(np.float64)[None, :, :]
    return np.exp(-gamma * (apart**2).sum(axis=2))


@pytest.mark.parametrize("offset", [0, 10, 1000])
@pytest.mark.parametrize("scale", [1e-4, 1, 1e4])
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array])
def test_rbf_in_single_precision_bears_an_offset(offset, scale, hold):
    random = np.random.default_rng(0)
    rows, columns = (scale * (offset + random.normal(size=(n, 30))) for n in (60, 40))
    rows, columns = rows.astype(np.float32), columns.astype(np.float32)
    columns[:20] = rows[:20]
    gamma = 1 / (30 * scale**2)
    block = RBFKernel(gamma).block(FeatureMatrix(hold(rows)), FeatureMatrix(hold(columns)))
    assert block.dtype == np.float32
    np.testing.assert_allclose(block, _exact_rbf(rows, columns, gamma), atol=1e-5)
    gram = RBFKernel(gamma).block(*[FeatureMatrix(hold(rows))] * 2)
    np.testing.assert_allclose(gram, _exact_rbf(rows, rows, gamma), atol=1e-5)


def test_rbf_in_double_precision_bears_an_offset():
    random = np.random.default_rng(0)
    rows, columns = 1e7 + random.normal(size=(20, 5)), 1e7 + random.normal(size=(10, 5))
    block = RBFKernel(0.2).block(FeatureMatrix(rows), FeatureMatrix(columns))
    np.testing.assert_allclose(block, _exact_rbf(rows, columns, 0.2), rtol=1e-9)


def test_rbf_tells_near_rows_of_distant_clusters_apart():
    random = np.random.default_rng(0)
    rows = (random.normal(size=(40, 3)) + 1000 * random.choice([-1, 1], (40, 1))).astype(np.float32)
    features = FeatureMatrix(rows)
    np.testing.assert_allclose(
        RBFKernel(0.5).block(features, features), _exact_rbf(rows, rows, 0.5), atol=1e-4
    )


@pytest.mark.parametrize("size", [1e-30, 1e18, 1e30])
def test_rbf_of_very_small_or_large_single_precision_features(size):
    rows = (size * np.random.default_rng(0).normal(size=(9, 3))).astype(np.float32)
    gamma = 0.3 / size**2
    for held in (rows, sp.csr_array(rows)):
        features = FeatureMatrix(held)
        np.testing.assert_allclose(
            RBFKernel(gamma).block(features, features), _exact_rbf(rows, rows, gamma), atol=1e-5
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-300, 1e-6, 1, 1e3, 1e300])
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array])
def test_a_row_has_kernel_one_with_itself_exactly(dtype, gamma, hold):
    features = FeatureMatrix(hold(np.random.default_rng(0).normal(5, 30, (500, 7)).astype(dtype)))
    again = FeatureMatrix(features.data)  # the same array within another object
    for kernel in (RBFKernel(gamma), LaplacianKernel(gamma), CosineKernel()):
        for other in (features, again):
            block = kernel.block(features, other)
            assert (block.diagonal() == 1).all()
            assert (block <= 1 + 1e-6).all()
        for slope in kernel.derivatives(features, features).values():
            assert np.isfinite(slope).all()
            assert (slope.diagonal() == 0).all()


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("spread", [0, 3.7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_is_found_as_in_scikit_learn(gamma, spread, dtype):
    table = (spread * (np.random.default_rng(0).random((12, 4)) < 0.4)).astype(dtype)
    for held in (table, sp.csr_array(table)):
        peer = SVC(gamma=gamma).fit(held, np.arange(12) % 2)
        for kernel in (RBFKernel(gamma), LaplacianKernel(gamma), PolynomialKernel(gamma=gamma)):
            found = kernel.resolved(FeatureMatrix(held))
            assert found.gamma == pytest.approx(peer._gamma, rel=1e-12)
            assert kernel.gamma == gamma
            assert type(found) is type(kernel)


@pytest.mark.parametrize("offset", [10.0, 1e5, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_of_sparse_rows_far_from_zero_is_that_of_dense_ones(offset, dtype):
    table = (offset + np.random.default_rng(0).normal(size=(50, 3)) * 1e-6 * offset).astype(dtype)
    table[:, 1] += np.arange(50, dtype=dtype) % 2
    dense, sparse = (RBFKernel().resolved(FeatureMatrix(held)).gamma for held in (table, sp.csr_array(table)))
    assert sparse == pytest.approx(dense, rel=1e-8)
    parts = [Moments.of(FeatureMatrix(sp.csr_array(part))) for part in (table[:20], table[20:])]
    apart = 1 / (3 * (parts[0] + parts[1]).of_all_entries)  # as on Dask
    assert apart == pytest.approx(dense, rel=1e-8)


@pytest.mark.parametrize("size", [1e-60, 1e-151, 1e-158, 1e-170, 1e-320])
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array])
def test_gamma_of_tiny_features_is_a_number(size, hold):
    features = FeatureMatrix(hold(size * np.random.default_rng(0).normal(size=(20, 3))))
    found = RBFKernel().resolved(features)
    assert 0 < found.gamma < np.inf
    assert np.isfinite(found.block(features, features)).all()


def test_gamma_of_nothing_is_one():
    for shape in ((0, 3), (3, 0)):
        for held in (np.zeros(shape), sp.csr_array(shape)):
            assert RBFKernel().resolved(FeatureMatrix(held)).gamma == 1.0


def test_gamma_is_found_inside_of_other_kernels():
    kernel = 2 * (RBFKernel() + LinearKernel()) * LaplacianKernel("auto") + PolynomialKernel(2, "scale", 0)
    features = FeatureMatrix(np.random.default_rng(0).normal(size=(5, 4)))
    assert kernel.parameter_names() == [
        "left__left__kernel__left__gamma", "left__left__scale", "left__right__gamma", "right__gamma",
    ]  # fmt: skip
    for use in (
        lambda: kernel.block(features, features),
        lambda: kernel.diagonal(features),
        lambda: kernel.derivatives(features, features),
        kernel.log_parameters,
    ):
        with pytest.raises(
            ValueError, match=r"gamma='(scale|auto)'.*estimated from data; call its method resolved"
        ):
            use()
    found = kernel.resolved(features)
    assert np.isfinite(found.block(features, features)).all()
    np.testing.assert_allclose(found.log_parameters()[1:3], np.log([2, 0.25]))


def test_explicit_features_where_they_are_cheap():
    table = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    features = FeatureMatrix(table)
    assert LinearKernel().explicit_features(features) is features
    for hold in (np.asarray, sp.csr_array):
        for kernel, expected in [
            (CosineKernel(), [[0.6, 0.8], [0, 0], [0, -1]]),
            (4.0 * CosineKernel(), [[1.2, 1.6], [0, 0], [0, -2]]),
            (0.25 * (4 * LinearKernel()), table),
            (0 * LinearKernel(), 0 * table),
        ]:
            found = kernel.explicit_features(FeatureMatrix(hold(table))).data
            np.testing.assert_allclose(found.toarray() if sp.issparse(found) else found, expected)
    for kernel in (
        RBFKernel(),
        LaplacianKernel(1.0),
        PolynomialKernel(),
        ConstantKernel(),
        2 * RBFKernel(1.0),
    ):
        assert kernel.explicit_features(features) is None


def test_operators_make_kernels():
    rbf, linear = RBFKernel(0.5), LinearKernel()
    cases = [
        (rbf + linear, SumKernel, "SumKernel(left=RBFKernel(gamma=0.5), right=LinearKernel())"),
        (rbf * linear, ProductKernel, "ProductKernel(left=RBFKernel(gamma=0.5), right=LinearKernel())"),
        (2 * rbf, ScaledKernel, "ScaledKernel(kernel=RBFKernel(gamma=0.5), scale=2)"),
        (np.float64(2.0) * rbf, ScaledKernel, None),
        (rbf * np.float32(2.0), ScaledKernel, None),
        (rbf + 3, SumKernel, "SumKernel(left=RBFKernel(gamma=0.5), right=ConstantKernel(value=3))"),
        (3.0 + rbf, SumKernel, None),
        (np.int64(3) + rbf, SumKernel, None),
        (sum([rbf, linear]), SumKernel, None),
    ]
    for kernel, kind, text in cases:
        assert type(kernel) is kind
        assert text is None or repr(kernel) == text
    for bad in ("a", None, [1.0], np.ones(2), 1j):
        for operation in (lambda a, b: a + b, lambda a, b: a * b):
            with pytest.raises(TypeError, match=r"unsupported|sequence|not support"):
                operation(rbf, bad)
            with pytest.raises(TypeError, match=r"unsupported|sequence|not support|concatenate"):
                operation(bad, rbf)


def test_values_of_composed_kernels():
    rows, columns = (FeatureMatrix(np.random.default_rng(s).normal(size=(4, 3))) for s in (0, 1))
    rbf, linear = RBFKernel(0.5), LinearKernel()
    a, b = rbf.block(rows, columns), linear.block(rows, columns)
    for kernel, expected in [
        (rbf + linear, a + b),
        (rbf * linear, a * b),
        (2 * linear, 2 * b),
        (0 * linear, 0 * b),
        (3 + rbf, 3 + a),
    ]:
        np.testing.assert_allclose(kernel.block(rows, columns), expected)


class _Model(BaseEstimator):
    def __init__(self, kernel=None):
        self.kernel = kernel


def test_a_search_reaches_parameters_by_name():
    model = _Model(2.0 * (RBFKernel(0.5) + LinearKernel()))
    model.set_params(kernel__kernel__left__gamma=3.0, kernel__scale=5.0)
    assert model.kernel.kernel.left.gamma == 3.0
    assert model.kernel.log_parameters() == pytest.approx(np.log([3, 5]))
    assert model.set_params(kernel=RBFKernel()).set_params(kernel__gamma="auto").kernel.gamma == "auto"


_BAD = [
    (RBFKernel(0), r"RBFKernel has gamma=0; pass a number > 0, 'scale' or 'auto'\."),
    (RBFKernel(-1.5), "gamma=-1.5"),
    (RBFKernel(np.nan), "gamma=nan"),
    (RBFKernel(np.inf), "gamma=inf"),
    (RBFKernel(None), "gamma=None"),
    (RBFKernel(True), "gamma=True"),
    (RBFKernel("wide"), "gamma='wide'"),
    (LaplacianKernel([1.0]), r"LaplacianKernel has gamma=\[1.0\]"),
    (PolynomialKernel(0, 1.0), "PolynomialKernel has degree=0; pass an integer from 1"),
    (PolynomialKernel(2.5, 1.0), "degree=2.5"),
    (PolynomialKernel(101, 1.0), "degree=101; pass an integer from 1 to 100"),
    (PolynomialKernel(2, 1.0, 1e101), r"coef0=1e\+101; pass a number from 0 to 1e\+100, so"),
    (1e101 * LinearKernel(), r"scale=1e\+101; pass a number from 0"),
    (PolynomialKernel(True, 1.0), "degree=True"),
    (PolynomialKernel(2, -1.0), "gamma=-1.0"),
    (PolynomialKernel(2, 1.0, -0.5), "coef0=-0.5; pass a number from 0"),
    (PolynomialKernel(2, 1.0, "a"), "coef0='a'"),
    (ConstantKernel(-1), "ConstantKernel has value=-1"),
    (LinearKernel() + -1, "ConstantKernel has value=-1"),
    (-2.0 * LinearKernel(), "ScaledKernel has scale=-2.0"),
    (np.nan * LinearKernel(), "scale=nan"),
    (SumKernel(LinearKernel(), "rbf"), "SumKernel has right='rbf'; pass a kernel object"),
    (ProductKernel(None, LinearKernel()), "ProductKernel has left=None"),
    (ScaledKernel(3, 2.0), "ScaledKernel has kernel=3"),
    (2 * (LinearKernel() + RBFKernel(-1)), "RBFKernel has gamma=-1"),
    (CallableKernel("rbf"), "CallableKernel has function='rbf'"),
]


@pytest.mark.parametrize(("kernel", "message"), _BAD)
def test_bad_parameters_are_refused_when_used(kernel, message):
    rows = FeatureMatrix(np.ones((2, 2)))
    for use in (
        lambda: kernel.block(rows, rows),
        lambda: kernel.diagonal(rows),
        lambda: kernel.derivatives(rows, rows),
        lambda: kernel.resolved(rows),
        lambda: kernel.explicit_features(rows),
        kernel.parameter_names,
        kernel.log_parameters,
    ):
        with pytest.raises(ValueError, match=message):
            use()


def test_values_too_large_are_refused():
    large = FeatureMatrix(np.full((3, 2), 1e30, np.float32))
    double = FeatureMatrix(np.full((3, 2), 1e30))
    for kernel in (
        LinearKernel(),
        PolynomialKernel(2, 1.0),
        ConstantKernel(1e39),
        1e39 * RBFKernel(1.0),
        PolynomialKernel(1, 1e-30) * PolynomialKernel(1, 1e-30),
    ):
        with pytest.raises(ValueError, match="has values too large for float32; scale"):
            kernel.block(large, large)
        kernel.block(double, double)
    with pytest.raises(ValueError, match="too large for float64"):
        PolynomialKernel(6, 1.0).diagonal(double)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_norms_too_large_are_refused():
    for held in (np.full((3, 2), 1e200), sp.csr_array(np.full((3, 2), 1e200))):
        with pytest.raises(ValueError, match="too large for float64; scale the features down"):
            RBFKernel(1.0).block(FeatureMatrix(held), FeatureMatrix(held))


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e170, 1e300])
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array])
def test_cosines_do_not_depend_on_the_size_of_rows(size, hold):
    table = np.array([[3.0, 0, 4], [0, 0, 0], [0, -5, 0], [5e-3, 0, 0]])
    with np.errstate(over="ignore"):
        usual, other = FeatureMatrix(hold(table)), FeatureMatrix(hold(table * size))
    kernel = CosineKernel()
    np.testing.assert_allclose(kernel.block(other, usual), kernel.block(usual, usual), rtol=1e-14)
    np.testing.assert_array_equal(kernel.diagonal(other), [1, 0, 1, 1])


def test_a_function_gets_the_data_as_they_are():
    seen = []

    def product(rows, columns):
        seen.append((type(rows), type(columns), rows.dtype))
        return rows @ columns.T  # sparse for sparse rows

    table = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    for held in (table, sp.csr_array(table)):
        features = FeatureMatrix(held)
        block = CallableKernel(product).block(features, features)
        np.testing.assert_array_equal(block, table @ table.T)
        assert block.dtype == np.float32
    assert seen == [(np.ndarray, np.ndarray, np.float32), (sp.csr_array, sp.csr_array, np.float32)]


def test_what_a_function_returns_stays_its_own():
    table = np.ones((3, 3))
    features = FeatureMatrix(np.eye(3))
    for kernel in (
        2 * CallableKernel(lambda a, b: table),
        CallableKernel(lambda a, b: table) * RBFKernel(1.0),
    ):
        kernel.block(features, features)
    np.testing.assert_array_equal(table, 1)


def test_the_diagonal_of_a_function_takes_few_rows_at_a_time():
    sizes = []

    def product(rows, columns):
        sizes.append((len(rows), len(columns)))
        return rows @ columns.T

    features = FeatureMatrix(np.random.default_rng(0).normal(size=(150, 2)))
    np.testing.assert_allclose(CallableKernel(product).diagonal(features), features.squared_norms())
    assert sizes == [(64, 64), (64, 64), (22, 22)]


def wrong(rows, columns):
    return np.ones((len(columns), len(rows)))


@pytest.mark.parametrize("gamma", [5e-324, 1e-120, 1e120, 1e300, np.float32(0.1), 3])
def test_every_width_that_is_allowed_can_be_stored(tmp_path, gamma):
    rows = FeatureMatrix(np.random.default_rng(0).normal(size=(9, 3)))
    for kernel in (
        RBFKernel(gamma),
        LaplacianKernel(gamma),
        ARDKernel(gamma),
        ARDKernel(1.0, [gamma, 1, 1]),
        PolynomialKernel(1, gamma, 1e100) + 1e100 * RBFKernel(gamma),
    ):
        save_object(tmp_path / "kernel.lw", kernel)
        again = load_object(tmp_path / "kernel.lw")
        np.testing.assert_array_equal(again.block(rows, rows), kernel.block(rows, rows))


def test_a_function_cannot_be_stored(tmp_path):
    for kernel in (CallableKernel(wrong), 2 * CallableKernel(wrong) + LinearKernel()):
        with pytest.raises(TypeError, match=r"function \(wrong\) cannot be stored.*use a kernel object"):
            save_object(tmp_path / "kernel.lw", kernel)
    assert not list(tmp_path.iterdir())


def test_kernels_from_their_names():
    assert repr(make_kernel("rbf", 0.5)) == "RBFKernel(gamma=0.5)"
    assert repr(make_kernel("laplacian")) == "LaplacianKernel()"
    assert make_kernel("laplacian").gamma == "scale"
    assert repr(make_kernel("linear", 0.5)) == "LinearKernel()"
    assert repr(make_kernel("cosine")) == "CosineKernel()"
    for name in ("poly", "poly"):
        assert make_kernel(name, "auto").get_params() == {"gamma": "auto", "degree": 3, "coef0": 1.0}
    kernel = RBFKernel()
    assert make_kernel(kernel) is kernel
    assert make_kernel(wrong).function is wrong


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array])
def test_a_block_needs_little_memory_beside_itself(dtype, hold):
    random = np.random.default_rng(0)
    table = (random.random((3000, 6)) * (random.random((3000, 6)) < 0.5)).astype(dtype)
    features, size = FeatureMatrix(hold(table)), 3000 * 2000 * np.dtype(dtype).itemsize
    some = features.rows(slice(0, 2000))
    for kernel, arrays in (
        (RBFKernel(1.0), 1), (RBFKernel(1e5), 1), (LaplacianKernel(1.0), 1), (PolynomialKernel(3, 1.0), 1),
        (RBFKernel(1.0) + LinearKernel(), 2), (2 * RBFKernel(1.0) * PolynomialKernel(2, 1.0) + 1.0, 2),
    ):  # fmt: skip
        kernel.block(features.rows(slice(0, 2)), features)  # imports what it needs
        tracemalloc.start()
        kernel.block(some, features)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < (arrays + 0.9) * size


def test_sparse_rows_of_a_model_are_turned_once(monkeypatch):
    rows = sp.random_array((9, 7), density=0.5, rng=np.random.default_rng(0)).tocsr()
    kernel, of_model = RBFKernel(0.5), FeatureMatrix(rows).kept_rows()
    first = kernel.block(FeatureMatrix(rows[:2]), of_model)
    monkeypatch.setattr(sp.csc_array, "tocsr", None)
    np.testing.assert_array_equal(kernel.block(FeatureMatrix(rows[:2]), of_model), first)
