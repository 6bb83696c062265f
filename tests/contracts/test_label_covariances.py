"""Requirements of every label covariance.  A new kind needs one more entry in ``KINDS``."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.covariance import shrunk_covariance

from labelweave.labels import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.model_files import load_object, save_object
from labelweave.testing import check_covariance

_FACTOR = np.array([[1.0, 0], [0.5, -1], [0, 0], [2, 1], [0, -0.3], [1, 0]])
_NAMES = ["ant", "bee", "cat", "dog", "elk", "fox"]
_LABELS = np.array([[1, 1, 0, 0, 1, 0], [0, 1, 0, 1, 1, 0], [1, 0, 0, 0, 1, 1], [0, 1, 1, 0, 1, 0]], float)
_MISSING = np.where(np.arange(24).reshape(4, 6) % 5 == 1, np.nan, _LABELS)
_TREE = Taxonomy([("all", "a"), ("all", "b"), ("a", "c"), ("a", "d"), ("b", "e")])
KINDS = {
    "identity": lambda: LabelCovariance.identity(6),
    "dense": lambda: LabelCovariance.dense(_FACTOR @ _FACTOR.T + np.eye(6)),
    "singular": lambda: LabelCovariance.dense(_FACTOR @ _FACTOR.T),
    "low rank": lambda: LabelCovariance.low_rank(_FACTOR, np.arange(6.0)),
    "low rank, sparse": lambda: LabelCovariance.low_rank(sp.csr_array(_FACTOR), 0.5),
    "sparse, whole numbers": lambda: LabelCovariance.low_rank(sp.csr_array(_FACTOR > 0), 0.5),
    "taxonomy": lambda: LabelCovariance.from_taxonomy(_TREE, ["a", "b", "c", "d", "e", "all"], {"a": 0.2}),
    "signatures": lambda: LabelCovariance.from_signatures(_LABELS, [1, 2, 3, 0]),
    "label set": lambda: LabelCovariance.from_labels(LabelMatrix.from_any(_LABELS, _NAMES)),
    "label set with missing entries": lambda: LabelCovariance.from_labels(_MISSING),
    "named": lambda: LabelCovariance.identity(6, _NAMES),
    "named, dense": lambda: LabelCovariance.dense(_FACTOR @ _FACTOR.T, _NAMES),
    "named, low rank": lambda: LabelCovariance.low_rank(_FACTOR, 0.0, _NAMES),
    "shrunk, dense": lambda: LabelCovariance.dense(_FACTOR @ _FACTOR.T).shrink(0.3),
    "shrunk, low rank": lambda: LabelCovariance.low_rank(sp.csr_array(_FACTOR)).shrink(0.3),
    "weighted": lambda: LabelCovariance.weighted(
        {"own": LabelCovariance.low_rank(_FACTOR[:, :0], 1.0), "tree": LabelCovariance.low_rank(_FACTOR)},
        [0.2, 1.4],
    ),
    "weighted, named": lambda: LabelCovariance.weighted(
        [LabelCovariance.dense(np.eye(6), _NAMES[::-1]), np.ones((6, 6)), LabelCovariance.identity(6)]
    ),
    "nothing": lambda: LabelCovariance.low_rank(np.zeros((6, 2))),
}


@pytest.fixture(params=KINDS)
def covariance(request):
    return KINDS[request.param]()


def test_it_passes_the_public_check(covariance):
    check_covariance(covariance)


def test_it_says_whether_labels_covary(covariance):
    dense = covariance.to_dense()
    if dense.any():
        assert covariance.is_diagonal == (np.count_nonzero(dense - np.diag(np.diag(dense))) == 0)


def test_products_with_whole_numbers_agree_with_the_whole(covariance):
    vectors = np.arange(18).reshape(3, 6)
    np.testing.assert_allclose(covariance.matmul(vectors), vectors @ covariance.to_dense(), atol=1e-12)


def test_it_survives_a_model_file(covariance, tmp_path):
    save_object(tmp_path / "covariance.lw", covariance)
    again = load_object(tmp_path / "covariance.lw")
    assert type(again) is type(covariance)
    np.testing.assert_array_equal(again.to_dense(), covariance.to_dense())
    np.testing.assert_array_equal(again.label_names, covariance.label_names)


@pytest.mark.parametrize("amount", [0, 0.25, 1.0])
def test_shrinking_is_that_of_scikit_learn(covariance, amount):
    shrunk = covariance.shrink(amount)
    assert type(shrunk) is type(covariance)
    np.testing.assert_array_equal(shrunk.label_names, covariance.label_names)
    np.testing.assert_allclose(
        shrunk.to_dense(), shrunk_covariance(covariance.to_dense(), amount), atol=1e-15
    )


def test_the_spectrum_makes_the_matrix_again(covariance):
    values, vectors = covariance.spectrum()
    dense = covariance.to_dense()
    assert len(values) == vectors.shape[1] == np.linalg.matrix_rank(dense, tol=1e-12)
    assert (values > 0).all()
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-12)
    np.testing.assert_allclose(vectors * values @ vectors.T, dense, atol=1e-12)
    assert (vectors.max(axis=0) >= -vectors.min(axis=0) - 1e-5).all()


def test_correlations_are_scaled_covariances(covariance):
    dense, correlations = covariance.to_dense(), covariance.correlations()
    deviations = np.sqrt(dense.diagonal())
    np.testing.assert_allclose(correlations * np.outer(deviations, deviations), dense, atol=1e-14)
    np.testing.assert_array_equal(correlations.diagonal(), deviations > 0)


def test_it_prints_its_size_and_its_variances(covariance):
    variances = covariance.diagonal()
    for text in (repr(covariance), str(covariance)):
        assert "6 labels" in text
        assert f"{variances.max():.3g}" in text
    assert "\n" not in repr(covariance)


def test_a_label_without_variance_is_named(covariance):
    fixed = np.flatnonzero(covariance.diagonal() == 0)
    if len(fixed) == 0:
        covariance.check_variances()
        return
    with pytest.raises(ValueError, match=f"variance 0 for label '{_NAMES[fixed[0]]}'.*{len(fixed)} of 6"):
        covariance.check_variances(_NAMES)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelCovariance.dense(np.ones((2, 3))), "square"),
        (lambda: LabelCovariance.dense([[1, 2], [0, 1]]), r"entry \(0, 1\) is 2.0 and \(1, 0\) is 0.0"),
        (lambda: LabelCovariance.dense([[1, 2], [2, 1]]), "smallest eigenvalue is -1"),
        (lambda: LabelCovariance.dense([[1, np.nan], [np.nan, 1]]), r"at \(0, 1\) is nan"),
        (lambda: LabelCovariance.low_rank(np.ones(3)), r"must have shape \(labels, rank\)"),
        (lambda: LabelCovariance.low_rank([[1.0], [np.nan]]), "at label 1, column 0 is nan"),
        (lambda: LabelCovariance.low_rank(sp.csr_array([[0, 1.0], [np.inf, 0]])), "label 1, column 0 is inf"),
        (lambda: LabelCovariance.low_rank(np.ones((2, 1)), [1, -1]), "at label 1 is -1.0"),
        (lambda: LabelCovariance.low_rank(np.ones((2, 1)), [1, 1, 1]), "one for each of 2 labels"),
        (lambda: LabelCovariance.identity(2, ["a"]), "1 label names were given for 2 labels"),
        (lambda: LabelCovariance.dense(np.eye(2), ["a", "a"]), "'a' occurs more than once"),
        (lambda: LabelCovariance.identity(2).shrink(1.5), "is 1.5; it must be between 0 and 1"),
        (lambda: LabelCovariance.low_rank(np.eye(2)).shrink(np.nan), "is nan; it must be"),
        (lambda: LabelCovariance.dense(np.eye(2)).shrink(-1), "is -1; it must be"),
        (lambda: LabelCovariance.weighted([]), "has no parts"),
        (lambda: LabelCovariance.weighted([np.eye(2), np.eye(3)]), "over 2 and 3 labels"),
        (lambda: LabelCovariance.weighted({"a": np.zeros((2, 2))}), "Part 'a' .* has no variance"),
        (lambda: LabelCovariance.weighted([np.eye(2)], [-1]), r"are \[-1\]; give a number >= 0"),
        (lambda: LabelCovariance.weighted([np.eye(2)], [0.5, 0.5]), "for each of 1 parts, not all 0"),
        (lambda: LabelCovariance.identity(30_000).spectrum(), "30000 x 30000 labels"),
        (lambda: LabelCovariance.from_taxonomy(_TREE, ["a", "z"]), "'z' is not in the taxonomy"),
        (lambda: LabelCovariance.from_taxonomy(_TREE, ["a"], {"z": 1}), "'z', which is not a node"),
        (lambda: LabelCovariance.from_taxonomy(_TREE, ["a"], {"a": -1}), "'a' is -1"),
    ],
)
def test_what_is_no_covariance_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
