"""What every label covariance keeps to.  A new kind needs one more entry in ``KINDS``."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.labels import LabelCovariance, Taxonomy
from labelweave.model_files import load_object, save_object

_FACTOR = np.array([[1.0, 0], [0.5, -1], [0, 0], [2, 1], [0, -0.3], [1, 0]])
_TREE = Taxonomy([("all", "a"), ("all", "b"), ("a", "c"), ("a", "d"), ("b", "e")])
KINDS = {
    "identity": lambda: LabelCovariance.identity(6),
    "dense": lambda: LabelCovariance.dense(_FACTOR @ _FACTOR.T + np.eye(6)),
    "singular": lambda: LabelCovariance.dense(_FACTOR @ _FACTOR.T),
    "low rank": lambda: LabelCovariance.low_rank(_FACTOR, np.arange(6.0)),
    "low rank, sparse": lambda: LabelCovariance.low_rank(sp.csr_array(_FACTOR), 0.5),
    "sparse, whole numbers": lambda: LabelCovariance.low_rank(sp.csr_array(_FACTOR > 0), 0.5),
    "taxonomy": lambda: LabelCovariance.from_taxonomy(_TREE, ["a", "b", "c", "d", "e", "all"], {"a": 0.2}),
}


@pytest.fixture(params=KINDS)
def covariance(request):
    return KINDS[request.param]()


def test_it_is_symmetric_and_positive_semidefinite(covariance):
    dense = covariance.to_dense()
    assert dense.shape == (covariance.n_labels, covariance.n_labels)
    np.testing.assert_allclose(dense, dense.T, atol=1e-14)
    assert np.linalg.eigvalsh(dense).min() > -1e-12


def test_diagonal_and_blocks_agree_with_the_whole(covariance):
    dense = covariance.to_dense()
    np.testing.assert_allclose(covariance.diagonal(), dense.diagonal())
    rows, columns = np.array([4, 0, 2, 2]), np.array([1, 4])
    np.testing.assert_allclose(covariance.block(rows, columns), dense[np.ix_(rows, columns)])
    assert covariance.is_diagonal == (np.count_nonzero(dense - np.diag(np.diag(dense))) == 0)


def test_columns_are_a_principal_block(covariance):
    chosen = np.array([5, 1, 3])
    kept = covariance.columns(chosen)
    assert kept.n_labels == 3
    np.testing.assert_allclose(kept.to_dense(), covariance.to_dense()[np.ix_(chosen, chosen)])
    np.testing.assert_allclose(kept.matmul(np.eye(3)), kept.to_dense())


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_products_agree_with_the_whole(covariance, kind):
    vectors = np.arange(18).reshape(3, 6).astype(kind)
    product = covariance.matmul(vectors)
    np.testing.assert_allclose(product, vectors @ covariance.to_dense(), rtol=1e-5, atol=1e-5)
    if kind != np.int64:
        assert product.dtype == kind


def test_it_survives_a_model_file(covariance, tmp_path):
    save_object(tmp_path / "covariance.lw", covariance)
    again = load_object(tmp_path / "covariance.lw")
    assert type(again) is type(covariance)
    np.testing.assert_array_equal(again.to_dense(), covariance.to_dense())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelCovariance.dense(np.ones((2, 3))), "square"),
        (lambda: LabelCovariance.dense([[1, 2], [0, 1]]), r"entry \(0, 1\) is 2.0 and \(1, 0\) is 0.0"),
        (lambda: LabelCovariance.dense([[1, 2], [2, 1]]), "smallest eigenvalue is -1"),
        (lambda: LabelCovariance.dense([[1, np.nan], [np.nan, 1]]), r"at \(0, 1\) is nan"),
        (lambda: LabelCovariance.low_rank(np.ones(3)), "needs two"),
        (lambda: LabelCovariance.low_rank([[1.0], [np.nan]]), "at label 1, column 0 is nan"),
        (lambda: LabelCovariance.low_rank(sp.csr_array([[0, 1.0], [np.inf, 0]])), "label 1, column 0 is inf"),
        (lambda: LabelCovariance.low_rank(np.ones((2, 1)), [1, -1]), "at label 1 is -1.0"),
        (lambda: LabelCovariance.from_taxonomy(_TREE, ["a", "z"]), "'z' is not in the taxonomy"),
        (lambda: LabelCovariance.from_taxonomy(_TREE, ["a"], {"z": 1}), "'z', which is no node"),
        (lambda: LabelCovariance.from_taxonomy(_TREE, ["a"], {"a": -1}), "'a' is -1"),
    ],
)
def test_what_is_no_covariance_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
