"""Requirements of every kernel.  A new kind needs one more entry in ``KINDS``."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from labelweave import features as kernels
from labelweave.features import (
    ARDKernel,
    CallableKernel,
    ConstantKernel,
    CosineKernel,
    FeatureMatrix,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
)
from labelweave.model_files import load_object, save_object
from labelweave.testing import check_kernel


def _shared_signs(rows, columns):
    """Return whole numbers, or a sparse array for sparse rows."""
    return (rows > 0).astype(int) @ (columns > 0).astype(int).T


KINDS = {
    "linear": LinearKernel,
    "cosine": CosineKernel,
    "rbf": lambda: RBFKernel(gamma=0.4),
    "rbf, narrow": lambda: RBFKernel(gamma=50),
    "ard": lambda: ARDKernel(gamma=0.4),
    "laplacian": lambda: LaplacianKernel(gamma=np.float64(0.3)),
    "poly": lambda: PolynomialKernel(degree=3, gamma=0.5, coef0=1.5),
    "polynomial, line": lambda: PolynomialKernel(degree=1, gamma=0.5, coef0=0),
    "polynomial, homogeneous": lambda: PolynomialKernel(degree=np.int64(6), gamma=0.5, coef0=0.0),
    "constant": lambda: ConstantKernel(2.5),
    "zero": lambda: ConstantKernel(0),
    "sum": lambda: RBFKernel(0.4) + LinearKernel(),
    "sum with itself": lambda: LinearKernel() + LinearKernel(),
    "sum with a constant": lambda: LaplacianKernel(0.4) + 0.5,
    "product": lambda: RBFKernel(0.4) * PolynomialKernel(2, 0.3, 1.0),
    "product with itself": lambda: RBFKernel(0.4) * RBFKernel(0.4),
    "scaled": lambda: 3.0 * RBFKernel(0.4),
    "scaled by zero": lambda: 0 * RBFKernel(0.4),
    "all": lambda: 2 * (RBFKernel(0.1) + 0.3 * CosineKernel()) * (1 + LaplacianKernel(0.2)) + 0.5,
    "function": lambda: CallableKernel(_shared_signs),
    "function in a product": lambda: CallableKernel(_shared_signs) * (2 * RBFKernel(0.4)),
}
_STORED = [kind for kind in KINDS if not kind.startswith("function")]


@pytest.fixture(params=KINDS)
def kernel(request):
    return KINDS[request.param]()


@pytest.fixture(params=_STORED)
def stored_kernel(request):
    return KINDS[request.param]()


def _table(n=9, d=4, seed=0):
    random = np.random.default_rng(seed)
    table = random.normal(size=(n, d)) * (random.random((n, d)) < 0.6)
    table[n // 2 :: 4] = 0  # some rows are zero
    return table


def test_it_passes_the_public_check(kernel):
    check_kernel(kernel)


def test_gram_matrices_are_symmetric_and_positive_semidefinite(kernel):
    for held in (_table(40), sp.csr_array(_table(40))):
        rows = FeatureMatrix(held)
        gram = kernel.block(rows, rows)
        np.testing.assert_allclose(gram, gram.T, rtol=1e-14)
        assert np.linalg.eigvalsh(gram).min() >= -1e-12 * max(1, abs(gram).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_diagonal_is_that_of_the_block(kernel, dtype):
    for held in (_table(150).astype(dtype), sp.csr_array(_table(150).astype(dtype))):
        rows, again = FeatureMatrix(held), FeatureMatrix(held.copy())
        diagonal = kernel.diagonal(rows)
        assert diagonal.dtype == np.float64
        for other in (rows, again):
            tolerance = 1e-5 if dtype == np.float32 else 1e-12
            np.testing.assert_allclose(kernel.block(rows, other).diagonal(), diagonal, tolerance, tolerance)


def test_dense_and_sparse_rows_have_the_same_values(kernel):
    rows, columns = _table(7, seed=1), _table(5, seed=2)
    expected = kernel.block(FeatureMatrix(rows), FeatureMatrix(columns))
    assert expected.shape == (7, 5)
    wide = sp.csr_array(columns)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for left in (rows, sp.csr_array(rows)):
        for right in (columns, sp.csr_array(columns), wide):
            block = kernel.block(FeatureMatrix(left), FeatureMatrix(right))
            np.testing.assert_allclose(block, expected, rtol=1e-12, atol=1e-13)
            assert block.flags.c_contiguous


def test_single_precision_is_for_single_precision_features(kernel):
    rows, columns = _table(7, seed=1), _table(5, seed=2)
    expected = kernel.block(FeatureMatrix(rows), FeatureMatrix(columns))
    for hold in (np.asarray, sp.csr_array):
        single = [FeatureMatrix(hold(table.astype(np.float32))) for table in (rows, columns)]
        block = kernel.block(*single)
        assert block.dtype == np.float32
        np.testing.assert_allclose(block, expected, rtol=3e-5, atol=3e-6)
        for mixed in ((single[0], FeatureMatrix(columns)), (FeatureMatrix(hold(rows)), single[1])):
            block = kernel.block(*mixed)
            assert block.dtype == np.float64
            np.testing.assert_allclose(block, expected, rtol=3e-5, atol=3e-6)
        for derivative in kernel.derivatives(*single).values():
            assert derivative.dtype == np.float32


def test_a_part_is_a_part_of_the_whole(kernel):
    for held in (_table(20), sp.csr_array(_table(20))):
        features = FeatureMatrix(held)
        whole = kernel.block(features, features)
        some = np.array([11, 3, 3, 0])
        part = kernel.block(features.rows(some), features.rows(slice(5, 9)))
        np.testing.assert_allclose(part, whole[some, 5:9], rtol=1e-12, atol=1e-14)


def test_features_are_left_alone_and_results_are_new(kernel):
    for held in (_table(), sp.csr_array(_table())):
        rows = FeatureMatrix(held)
        first = kernel.block(rows, rows)
        first[:] = np.nan
        assert np.isfinite(kernel.block(rows, rows)).all()
        kept = rows.data.toarray() if rows.is_sparse else rows.data
        np.testing.assert_array_equal(kept, _table())


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1), (1, 3)])
def test_small_and_empty_tables(kernel, shape):
    full = np.ones(shape), sp.csr_array(np.ones(shape))
    for held in (*full, np.zeros(shape), sp.csr_array(shape)):
        for other in (held, np.ones((2, shape[1])), sp.csr_array((2, shape[1]))):
            rows, columns = FeatureMatrix(held), FeatureMatrix(other)
            block = kernel.block(rows, columns)
            assert block.shape == (shape[0], other.shape[0])
            assert np.isfinite(block).all()
            assert all(slope.shape == block.shape for slope in kernel.derivatives(rows, columns).values())
        np.testing.assert_allclose(kernel.diagonal(rows), kernel.block(rows, rows).diagonal(), rtol=1e-12)


_SCALES = [1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e3]


@pytest.mark.parametrize("scale", _SCALES)
@pytest.mark.parametrize("same", [False, True])
def test_derivatives_are_finite_differences(kernel, scale, same):
    rows = FeatureMatrix(_table(7, seed=1))
    columns = rows if same else FeatureMatrix(_table(5, seed=2))
    size = len(kernel.parameter_names())
    theta = np.log(scale) + np.linspace(0, 0.3, size)
    at = kernel.with_log_parameters(theta)
    derivatives = at.derivatives(rows, columns)
    assert list(derivatives) == at.parameter_names()
    step = 1e-4
    for which, found in enumerate(derivatives.values()):
        move = step * np.eye(size)[which]
        sides = [at.with_log_parameters(theta + sign * move).block(rows, columns) for sign in (-1, 1)]
        spread = np.maximum(abs(sides[0]), abs(sides[1])).max()
        # a cubic term of the differences, and rounding
        np.testing.assert_allclose(found, (sides[1] - sides[0]) / (2 * step), 1e-5, 1e-11 * spread + 1e-90)


@pytest.mark.parametrize("scale", _SCALES)
def test_derivatives_agree_between_types(kernel, scale):
    at = kernel.with_log_parameters(np.full(len(kernel.parameter_names()), np.log(scale)))
    rows = FeatureMatrix(_table().astype(np.float32))
    exact = at.derivatives(*[FeatureMatrix(rows.data.astype(np.float64))] * 2)
    for held in (rows, FeatureMatrix(sp.csr_array(rows.data))):
        for name, found in at.derivatives(held, held).items():
            close = 1e-5 * abs(exact[name]).max(initial=0.0)
            np.testing.assert_allclose(found, exact[name], rtol=1e-3, atol=close + 1e-30)


def test_log_parameters_come_back(kernel):
    theta = kernel.log_parameters()
    assert theta.dtype == np.float64
    assert theta.shape == (len(kernel.parameter_names()),)
    np.testing.assert_allclose(
        [kernel.get_params()[name] for name in kernel.parameter_names()], np.exp(theta), rtol=1e-15
    )
    moved = kernel.with_log_parameters(theta + 0.5)
    np.testing.assert_allclose(moved.log_parameters(), theta + 0.5, rtol=1e-14)
    np.testing.assert_array_equal(kernel.log_parameters(), theta)  # a new kernel
    with pytest.raises(ValueError, match=rf"theta has shape \({len(theta) + 1},\), but"):
        kernel.with_log_parameters(np.zeros(len(theta) + 1))


def test_numbers_need_no_data_and_a_resolved_kernel_is_one_of_its_own(kernel):
    rows = FeatureMatrix(_table())
    found = kernel.resolved(rows)
    assert type(found) is type(kernel)
    np.testing.assert_array_equal(found.block(rows, rows), kernel.block(rows, rows))
    before = found.log_parameters()
    kernel.set_params(**dict.fromkeys(kernel.parameter_names(), 7.25))
    np.testing.assert_array_equal(found.log_parameters(), before)


def test_explicit_features_have_the_kernel_as_dot_products(kernel):
    for held in (_table(), sp.csr_array(_table()), _table().astype(np.float32)):
        rows = FeatureMatrix(held, list("abcd"))
        explicit = kernel.explicit_features(rows)
        if explicit is not None:
            assert explicit.is_sparse == rows.is_sparse
            assert explicit.data.dtype == rows.data.dtype
            assert list(explicit.names) == list("abcd")
            products = LinearKernel().block(explicit, explicit)
            np.testing.assert_allclose(products, kernel.block(rows, rows), rtol=1e-6, atol=1e-6)


def test_clones_are_equal_and_apart(kernel):
    again, rows = clone(kernel), FeatureMatrix(_table())
    assert again is not kernel
    assert repr(again) == repr(kernel)
    np.testing.assert_array_equal(again.block(rows, rows), kernel.block(rows, rows))
    for name in kernel.parameter_names():
        before = kernel.get_params()[name]
        again.set_params(**{name: 7.25})
        assert again.get_params()[name] == 7.25
        assert kernel.get_params()[name] == before


def test_it_prints_as_code(stored_kernel):
    names = {name: getattr(kernels, name) for name in kernels.__all__}
    again = eval(repr(stored_kernel), names | {"np": np})
    rows = FeatureMatrix(_table())
    np.testing.assert_array_equal(again.block(rows, rows), stored_kernel.block(rows, rows))


def test_it_survives_a_model_file(stored_kernel, tmp_path):
    save_object(tmp_path / "kernel.lw", stored_kernel)
    again, rows = load_object(tmp_path / "kernel.lw"), FeatureMatrix(_table())
    assert type(again) is type(stored_kernel)
    assert repr(again) == repr(stored_kernel)
    np.testing.assert_array_equal(again.block(rows, rows), stored_kernel.block(rows, rows))


def test_it_takes_feature_matrices_of_the_same_width(kernel):
    rows = FeatureMatrix(_table())
    for method in (kernel.block, kernel.derivatives):
        with pytest.raises(ValueError, match="rows have 4 features and the columns 3"):
            method(rows, FeatureMatrix(_table(d=3)))
        with pytest.raises(TypeError, match="A kernel got a ndarray"):
            method(rows, _table())
    with pytest.raises(TypeError, match="A kernel got a ndarray"):
        kernel.diagonal(_table())
