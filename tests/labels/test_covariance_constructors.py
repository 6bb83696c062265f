"""Covariances from signatures and label sets, their names, and how they print."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import labelweave.labels.covariance as covariance_package
from labelweave.labels import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.model_files.storable import registered_class

SIGNATURES = pd.DataFrame(
    [[1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]],
    index=["bear", "dog", "whale"],
    columns=["fur", "big", "fins", "tail"],
)
small = settings(max_examples=60)


def mean_of_outer_products(Y):
    """One row after the other, with the rows of a pair that have both entries."""
    Y = np.asarray(Y, float)
    total, shared = np.zeros((2, Y.shape[1], Y.shape[1]))
    for row in Y:
        seen = ~np.isnan(row)
        signs = np.where(seen, np.where(row > 0, 1, -1), 0)
        total += np.outer(signs, signs)
        shared += np.outer(seen, seen)
    mean = np.where(shared > 0, total / np.maximum(shared, 1), 0)
    np.fill_diagonal(mean, 1)
    return mean


def test_the_old_names_are_where_they_were():
    for name in ("LabelCovariance", "DenseCovariance", "FactorCovariance", "IdentityCovariance"):
        assert getattr(covariance_package, name).__name__ == name
    for name in ("DenseCovariance", "FactorCovariance", "IdentityCovariance"):
        assert registered_class(name) is getattr(covariance_package, name)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("IdentityCovariance", {"n_labels": 2}),
        ("DenseCovariance", {"matrix": np.eye(2)}),
        ("FactorCovariance", {"factor": np.ones((2, 1)), "diagonal": np.zeros(2)}),
    ],
)
def test_states_without_names_are_read(name, state):
    made = registered_class(name).from_state(state)
    assert made.label_names is None
    assert made.n_labels == 2
    assert made.to_state().keys() == state.keys()


@pytest.mark.parametrize(
    "signatures",
    [
        SIGNATURES,
        SIGNATURES.to_numpy(),
        SIGNATURES.to_numpy().tolist(),
        SIGNATURES.to_numpy().astype(bool),
        2 * SIGNATURES - 1,
        SIGNATURES.astype(object),
        SIGNATURES.astype("Int64"),
        sp.csr_array(SIGNATURES.to_numpy()),
        LabelMatrix.from_any(SIGNATURES),
    ],
    ids=["frame", "array", "list", "bool", "signs", "object", "Int64", "sparse", "label matrix"],
)
def test_signatures_are_summed_with_their_prior(signatures):
    R = LabelCovariance.from_signatures(signatures, [1, 2, 1])
    signs = 2.0 * SIGNATURES.to_numpy() - 1
    expected = 0.25 * (np.outer(signs[0], signs[0]) + np.outer(signs[2], signs[2])) + 0.5 * np.outer(
        signs[1], signs[1]
    )
    np.testing.assert_allclose(R.to_dense(), expected, atol=1e-15)
    assert R.factor.shape == (4, 3)
    named = isinstance(signatures, (pd.DataFrame, LabelMatrix))
    assert (None if R.label_names is None else list(R.label_names)) == (list(SIGNATURES) if named else None)


def test_without_a_prior_all_classes_weigh_the_same():
    equal = LabelCovariance.from_signatures(SIGNATURES)
    for prior in ([7, 7, 7], {"whale": 1, "bear": 1, "dog": 1}, [1e308, 1e308, 1e308]):
        np.testing.assert_allclose(
            LabelCovariance.from_signatures(SIGNATURES, prior).to_dense(), equal.to_dense()
        )
    np.testing.assert_allclose(
        equal.to_dense(), LabelCovariance.from_labels(SIGNATURES, centered=False).to_dense()
    )


def test_a_named_prior_may_come_in_another_order():
    rows = pd.Series(["whale"] * 5 + ["dog"] * 3 + ["bear"])
    by_count = LabelCovariance.from_signatures(SIGNATURES, rows.value_counts())
    in_order = LabelCovariance.from_signatures(SIGNATURES, [1, 3, 5])
    np.testing.assert_array_equal(by_count.to_dense(), in_order.to_dense())
    numbered = LabelCovariance.from_signatures(SIGNATURES.to_numpy(), pd.Series({2: 5, 1: 3, 0: 1}))
    np.testing.assert_array_equal(numbered.to_dense(), in_order.to_dense())
    plain = LabelCovariance.from_signatures(SIGNATURES, pd.Series([1, 3, 5]))
    np.testing.assert_array_equal(plain.to_dense(), in_order.to_dense())


def test_a_class_of_no_weight_adds_no_rank():
    R = LabelCovariance.from_signatures(SIGNATURES, [1, 0, 1])
    assert R.factor.shape == (4, 2)
    np.testing.assert_allclose(R.diagonal(), 1)


@pytest.mark.parametrize(
    ("signatures", "prior", "message"),
    [
        (SIGNATURES * 2, None, "class 'bear' at label 'fur' is 2; signatures must be all 0/1 or all -1/1"),
        (SIGNATURES.reindex(["bear", "dog", "cow"]), None, "class 'cow' at label 'fur' is nan"),
        (SIGNATURES.to_numpy() - np.eye(3, 4), None, "class 1 at label 1 is -1 while other"),
        (SIGNATURES.astype(str).replace("1", "yes"), None, "not numbers"),
        (np.ones(3), None, r"shape \(3,\)"),
        (SIGNATURES, [1, 1], r"shape \(2,\); pass one number per class \(3\)"),
        (SIGNATURES, [1, -1, 1], "class 'dog' is -1.0"),
        (SIGNATURES, [1, np.nan, 1], "class 'dog' is nan"),
        (SIGNATURES.to_numpy(), [1, 1, np.inf], "class 2 is inf"),
        (SIGNATURES, [0, 0, 0], "0 for every class"),
        (SIGNATURES, {"bear": 1, "dog": 1, "cat": 1}, "'cat' is in class_prior but not in signatures"),
        (SIGNATURES, {"bear": 1, "dog": 1}, "'whale' is in signatures but not in class_prior"),
    ],
)
def test_bad_signatures_and_priors_are_refused(signatures, prior, message):
    with pytest.raises(ValueError, match=message):
        LabelCovariance.from_signatures(signatures, prior)


@small
@given(arrays(np.int8, st.tuples(st.integers(1, 12), st.integers(1, 6)), elements=st.integers(0, 1)))
def test_a_label_set_gives_its_mean_outer_product(Y):
    expected = mean_of_outer_products(Y)
    for same in (Y, sp.csr_array(Y), 2 * Y - 1 if (Y == 0).any() else Y):
        R = LabelCovariance.from_labels(same, centered=False)
        np.testing.assert_allclose(R.to_dense(), expected, atol=1e-14)
        np.testing.assert_array_equal(R.diagonal(), 1)


@small
@given(
    arrays(float, st.tuples(st.integers(1, 10), st.integers(1, 6)), elements=st.sampled_from([0, 1, np.nan]))
)
def test_missing_entries_leave_a_covariance(Y):
    expected = mean_of_outer_products(Y)
    R = LabelCovariance.from_labels(Y, centered=False).to_dense()
    np.testing.assert_array_equal(R.diagonal(), 1)
    np.testing.assert_array_equal(R, R.T)
    assert np.linalg.eigvalsh(R).min() > -1e-12
    values, vectors = np.linalg.eigh(expected)
    if values[0] < -1e-10:
        expected = vectors * np.maximum(values, 0) @ vectors.T
        scales = np.sqrt(expected.diagonal())
        expected /= np.outer(scales, scales)
    np.testing.assert_allclose(R, expected, atol=1e-10)


@pytest.mark.parametrize("centered", [False, True])
def test_entries_as_likely_as_not_are_unobserved(centered):
    table = np.random.default_rng(0).choice([0.1, 0.5, 0.9], size=(30, 3))
    sure = np.select([table < 0.5, table > 0.5], [0.0, 1.0], np.nan)
    found, same = (
        LabelCovariance.from_labels(labels, centered=centered).to_dense()
        for labels in (LabelMatrix.from_probabilities(table), sure)
    )
    np.testing.assert_array_equal(found, same)


def test_labels_never_seen_together_are_uncorrelated():
    Y = [[1, np.nan, 1], [0, np.nan, 0], [np.nan, 1, np.nan]]
    np.testing.assert_array_equal(
        LabelCovariance.from_labels(Y, centered=False).to_dense(), [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    )


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_products_of_sparse_and_of_full_rows_agree(share):
    """The two ways to count, with more labels than are processed at once."""
    rng = np.random.default_rng(3)
    Y = (rng.random((60, 1100)) < share).astype(float)
    np.testing.assert_allclose(
        LabelCovariance.from_labels(Y, centered=False).to_dense(), mean_of_outer_products(Y), atol=1e-14
    )


def test_a_large_sparse_label_set_is_never_written_out():
    positives = sp.random_array((2_000_000, 200), density=1e-4, rng=np.random.default_rng(0), format="csr")
    R = LabelCovariance.from_labels(LabelMatrix(positives), centered=False)
    assert R.to_dense().min() > 0.99


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.zeros((3, 0)), r"shape \(3, 0\)"),
        (sp.csr_array((2, 20_001)), "20001 x 20001 labels.*low_rank"),
        ([[0, 2]], "label 1 is 2"),
    ],
)
def test_label_sets_of_no_use_are_refused(Y, message):
    with pytest.raises(ValueError, match=message):
        LabelCovariance.from_labels(Y, centered=False)


def test_rare_labels_do_not_look_alike():
    rng = np.random.default_rng(0)
    Y = (rng.random((5000, 40)) < 0.002).astype(float)
    Y[:, 0] = rng.random(5000) < 0.3
    Y[:, 1] = np.where(rng.random(5000) < 0.9, Y[:, 0], 1 - Y[:, 0])
    R = LabelCovariance.from_labels(Y).to_dense()
    alike = LabelCovariance.from_labels(Y, centered=False).to_dense()
    rare = ~np.eye(40, dtype=bool)[2:, 2:]
    assert alike[2:, 2:][rare].min() > 0.9
    assert abs(R[2:, 2:][rare]).max() < 0.3
    assert R[0, 1] == pytest.approx(np.corrcoef(Y[:, 0], Y[:, 1])[0, 1], abs=0.01)


@small
@given(
    arrays(float, st.tuples(st.integers(2, 12), st.integers(1, 6)), elements=st.sampled_from([0, 1, np.nan])),
    st.sampled_from([0.0, 1.0, 5.0]),
)
def test_shrunk_correlations_are_a_covariance(Y, prior_count):
    R = LabelCovariance.from_labels(Y, prior_count=prior_count).to_dense()
    np.testing.assert_array_equal(R.diagonal(), 1)
    np.testing.assert_allclose(R, R.T, atol=1e-15)
    assert np.linalg.eigvalsh(R).min() > -1e-9
    if np.isnan(Y).any() or np.isin(Y.mean(axis=0), (0, 1)).any():
        return
    rarer = np.minimum(Y.sum(axis=0), (1 - Y).sum(axis=0))
    trust = np.sqrt(rarer / (rarer + prior_count))
    expected = np.atleast_2d(np.corrcoef(Y.T)) * np.outer(trust, trust)
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(R, expected, atol=1e-9)


def test_a_negative_prior_count_is_refused():
    with pytest.raises(ValueError, match=r"prior_count is -1; it must be"):
        LabelCovariance.from_labels(SIGNATURES, prior_count=-1)


def test_frames_give_their_names():
    names = ["fur", "big", "fins"]
    matrix = np.array([[2.0, 1, 0], [1, 3, 0], [0, 0, 1]])
    frame = pd.DataFrame(matrix, names, names)
    for given_frame in (frame, frame.loc[["fins", "fur", "big"]], frame.reset_index(drop=True)):
        R = LabelCovariance.dense(given_frame)
        assert list(R.label_names) == names
        np.testing.assert_array_equal(R.to_dense(), matrix)
    assert list(LabelCovariance.dense(frame, ["a", "b", "c"]).label_names) == ["a", "b", "c"]
    assert LabelCovariance.dense(matrix).label_names is None
    with pytest.raises(ValueError, match="row named 'wings' but no such column"):
        LabelCovariance.dense(frame.rename(index={"fur": "wings"}))


def test_label_sets_and_trees_give_their_names():
    assert list(LabelCovariance.from_labels(SIGNATURES).label_names) == list(SIGNATURES)
    tree = Taxonomy([("animal", "dog"), ("animal", "cat")])
    assert list(LabelCovariance.from_taxonomy(tree, ["cat", "dog"]).label_names) == ["cat", "dog"]


def test_a_thin_factor_needs_no_square_matrix():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(50_000, 3)) * [1, 10, 100]
    values, vectors = LabelCovariance.low_rank(factor).spectrum()
    np.testing.assert_allclose(values, np.linalg.eigvalsh(factor.T @ factor)[::-1])
    np.testing.assert_allclose((vectors * values) @ (vectors.T @ factor), factor @ (factor.T @ factor))


def test_signs_do_not_hang_on_rounding():
    R = LabelCovariance.dense([[1, -0.5], [-0.5, 1]])
    _, vectors = R.spectrum()
    np.testing.assert_allclose(vectors * np.sqrt(2), [[1, 1], [-1, 1]])


def test_printing_lists_the_strongest_pairs_by_name():
    names = ["fur", "big", "fins", "tail"]
    matrix = np.diag([1.0, 4.0, 1.0, 1.0])
    matrix[0, 1] = matrix[1, 0] = 1.0
    matrix[0, 2] = matrix[2, 0] = -0.75
    matrix[2, 3] = matrix[3, 2] = 1e-4
    R = LabelCovariance.dense(matrix, names)
    assert repr(R) == (
        "LabelCovariance(4 labels, dense, variances 1 to 4, fur ~ big +0.50, fur ~ fins -0.75)"
    )
    assert str(R).splitlines() == [
        "Label covariance over 4 labels, dense",
        "variances: 1 to 4",
        "strongest positive correlations:",
        "  +0.50  fur ~ big",
        "strongest negative correlations:",
        "  -0.75  fur ~ fins",
    ]


def test_printing_is_short_for_what_is_large_or_empty():
    assert (
        repr(LabelCovariance.identity(10**6)) == "LabelCovariance(1000000 labels, independent, variances 1)"
    )
    assert repr(LabelCovariance.identity(0)) == "LabelCovariance(0 labels, independent, variances none)"
    large = LabelCovariance.low_rank(np.ones((3000, 1)), 1.0)
    assert repr(large) == "LabelCovariance(3000 labels, rank 1 plus diagonal, variances 2)"
    assert "not listed" in str(large)
    long_names = LabelCovariance.low_rank(np.ones((2, 1)), 0, ["x" * 100, "y" * 100])
    assert len(repr(long_names)) < 150


def test_a_fixed_label_is_named_by_the_names_it_carries():
    R = LabelCovariance.low_rank([[1.0], [0.0], [0.0]], 0, ["fur", "big", "fins"])
    with pytest.raises(ValueError, match=r"label 'big'.*\(2 of 3 labels.*shrink\(0\.1\)"):
        R.check_variances()
    R.shrink(0.1).check_variances()
    with pytest.raises(ValueError, match=r"label 0, .*set their variances above 0"):
        LabelCovariance.low_rank(np.zeros((2, 1))).check_variances()


def test_rows_of_a_name_twice_are_refused():
    table = pd.DataFrame(np.eye(2), index=["a", "a"], columns=["a", "b"])
    with pytest.raises(ValueError, match="a row named 'a' twice"):
        LabelCovariance.dense(table)


def test_the_largest_variances_stay_finite_and_any_number_scales():
    assert LabelCovariance.dense(np.diag([1.7e308, 1.0])).to_dense()[0, 0] == 1.7e308
    assert LabelCovariance.dense(np.eye(2)).scaled(Fraction(1, 2)).to_dense().dtype == np.float64


def test_a_factor_is_kept_when_the_callers_changes():
    given = np.ones((2, 1))
    covariance = LabelCovariance.low_rank(given, 1.0)
    given[:] = 0.0
    assert covariance.to_dense()[0, 1] == 1.0
