import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelweave.labels import LabelMatrix

_TABLES = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.sampled_from([0.0, 1.0, np.nan]),
)


@given(_TABLES)
def test_dense_targets_come_back(table):
    labels = LabelMatrix.from_any(table)
    np.testing.assert_array_equal(labels.to_dense(), table)
    signs = labels.to_signs()
    assert signs.dtype == np.int8
    np.testing.assert_array_equal(signs, np.nan_to_num(2 * table - 1, nan=0))
    np.testing.assert_array_equal(labels.positive_counts(), (table == 1).sum(axis=0))
    np.testing.assert_array_equal(labels.observed_counts(), (~np.isnan(table)).sum(axis=0))
    assert labels.has_missing == np.isnan(table).any()
    assert labels.shape == table.shape
    assert len(labels) == len(table)


def test_nan_is_no_positive_entry():
    for table in ([[1.0, np.nan]], np.ma.masked_equal([[1, 2]], 2)):
        with pytest.raises(ValueError, match=r"has NaN; use LabelMatrix.from_any"):
            LabelMatrix(table)


@given(_TABLES, st.randoms(use_true_random=False))
def test_rows_and_labels_are_chosen_as_in_an_array(table, random):
    labels = LabelMatrix.from_any(table, [f"l{k}" for k in range(table.shape[1])])
    rows = [random.randrange(len(table)) for _ in range(4)]
    columns = random.sample(range(table.shape[1]), k=random.randint(1, table.shape[1]))
    np.testing.assert_array_equal(labels[rows].to_dense(), table[rows])
    np.testing.assert_array_equal(labels[1:].to_dense(), table[1:])
    np.testing.assert_array_equal(labels[0].to_dense(), table[:1])
    np.testing.assert_array_equal(labels[np.arange(len(table)) > 0].to_dense(), table[1:])
    chosen = labels.select_labels(columns)
    np.testing.assert_array_equal(chosen.to_dense(), table[:, columns])
    assert list(chosen.names) == [f"l{k}" for k in columns]


def test_every_kind_of_input_says_the_same():
    pd = pytest.importorskip("pandas")
    table = np.array([[0, 1, 1], [1, 0, 0]])
    for given_as in (
        table, table.astype(bool), table.astype(np.float32), table.astype(object), table.tolist(),
        2 * table - 1, sp.csr_array(table), sp.csc_matrix(table.astype(bool)), sp.coo_array(table * 1.0),
        pd.DataFrame(table), pd.DataFrame(table.astype(bool)), LabelMatrix.from_any(table),
    ):  # fmt: skip
        np.testing.assert_array_equal(LabelMatrix.from_any(given_as).to_dense(), table)


def test_missing_entries_in_every_kind_of_frame():
    pd = pytest.importorskip("pandas")
    expected = [[1, np.nan], [0, 1]]
    for values in (
        {"a": [1.0, 0.0], "b": [np.nan, 1.0]},
        {"a": [True, False], "b": [None, True]},
        {"a": pd.array([1, 0]), "b": pd.array([None, 1], dtype="Int64")},
        {"a": pd.array([True, False]), "b": pd.array([None, True], dtype="boolean")},
    ):
        labels = LabelMatrix.from_any(pd.DataFrame(values))
        np.testing.assert_array_equal(labels.to_dense(), expected)
        assert list(labels.names) == ["a", "b"]


def test_repeated_entries_count_once():
    repeated = sp.coo_array(([1, 1, 1], ([0, 0, 1], [1, 1, 0])), shape=(2, 3))
    observed = sp.coo_array(([1, 1, 5, 1, 1], ([0, 0, 1, 0, 1], [2, 2, 2, 1, 0])), shape=(2, 3))
    labels = LabelMatrix(repeated, observed)
    np.testing.assert_array_equal(labels.to_signs(), [[0, 1, -1], [1, 0, -1]])
    assert labels.observed.nnz == 4
    stored_zero = sp.csr_array(([1, 0], [0, 1], [0, 2]), shape=(1, 2))
    np.testing.assert_array_equal(LabelMatrix.from_any(stored_zero).to_dense(), [[1, 0]])


def test_a_mask_hides_positives_and_a_contradiction_is_refused():
    table = np.array([[1, 0, 1], [0, 1, 0]])
    seen = sp.csr_array(np.array([[1, 1, 0], [0, 0, 1]]))
    hidden = LabelMatrix(sp.csr_array(table)).masked(seen)
    np.testing.assert_array_equal(hidden.to_signs(), [[1, -1, 0], [0, 0, -1]])
    again = hidden.masked(sp.csr_array(np.array([[0, 1, 1], [1, 1, 1]])))
    np.testing.assert_array_equal(again.to_signs(), [[0, -1, 0], [0, 0, -1]])
    with pytest.raises(ValueError, match=r"row 0, label 2 is positive but not in the observed mask"):
        LabelMatrix(sp.csr_array(table), seen)
    with pytest.raises(ValueError, match=r"mask has shape \(2, 2\)"):
        hidden.masked(seen[:, :2])


def test_what_the_caller_holds_is_left_alone():
    given_as = sp.csr_array(([1, 0, 1, 1], [2, 1, 0, 0], [0, 2, 4]), shape=(2, 3))
    before = given_as.data.copy(), given_as.indices.copy(), given_as.indptr.copy()
    LabelMatrix(given_as, given_as)
    for array, kept in zip((given_as.data, given_as.indices, given_as.indptr), before, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_changes_of_what_the_caller_holds_change_no_labels():
    given_as = sp.csr_array([[1, 1], [0, 1]])
    labels = LabelMatrix(given_as, given_as)
    given_as.data[0] = 0
    given_as.eliminate_zeros()
    np.testing.assert_array_equal(labels.to_signs(), [[1, 1], [0, 1]])


def test_rows_are_chosen_by_a_series_and_alone():
    pd = pytest.importorskip("pandas")
    labels = LabelMatrix.from_any([[0, 1], [1, 0]])
    np.testing.assert_array_equal(labels[pd.Series([False, True])].to_dense(), [[1, 0]])
    assert len(labels[[]]) == 0
    for rows in ((0, 1), [[0, 1]]):
        with pytest.raises(ValueError, match="The index "):
            labels[rows]


def test_no_number_of_repeated_entries_is_none():
    again = sp.coo_array((np.ones(256, np.int8), (np.zeros(256, int), np.zeros(256, int))), shape=(1, 1))
    assert LabelMatrix(again).positives.nnz == 1
    with pytest.raises(ValueError, match="label 0 is 256"):
        LabelMatrix.from_any(again)


@pytest.mark.parametrize(
    ("Y", "names", "message"),
    [
        ([[0, 1], [2, 0]], None, "row 1, label 0 is 2"),
        ([[0, 1], [0, np.inf]], ["a", "b"], "row 1, label 'b' is inf"),
        ([[0, 1], [0, -1]], ["a", "b"], "two codings: row 1, label 'b' is -1"),
        ([0, 1], None, r"shape \(2,\); it must have shape"),
        ([["yes", "no"]], None, "the tags 'no', 'yes'"),
        (np.array([["yes", "no"]]), None, "float: 'yes'"),
        (np.array([["yes", 1]], object), None, "not numbers"),
        ([[1j]], None, "type complex128"),
        (sp.csr_array([[0, 0], [0, -1]]), None, "row 1, label 1 is -1"),
        (sp.csr_array([[0, np.nan]]), None, "row 0, label 1 is nan"),
        ([[0, 1]], ["a"], "1 label names were given for 2 labels"),
        ([[0, 1]], ["a", "a"], "'a' occurs more than once"),
    ],
)
def test_what_is_no_label_is_refused(Y, names, message):
    with pytest.raises(ValueError, match=message):
        LabelMatrix.from_any(Y, names)


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"observed has shape \(1, 2\)"):
        LabelMatrix(sp.csr_array((1, 3)), sp.csr_array((1, 2)))


_SHARES = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.sampled_from([0.0, 1.0, np.nan, 0.5, 0.2, 0.75]),
)


@given(_SHARES)
def test_probabilities_come_back(table):
    labels = LabelMatrix.from_probabilities(table)
    np.testing.assert_array_equal(labels.to_dense(), table)
    np.testing.assert_array_equal(labels[::-1].to_dense(), table[::-1])
    columns = np.arange(table.shape[1])[::-1]
    np.testing.assert_array_equal(labels.select_labels(columns).to_dense(), table[:, columns])
    hard = np.where(np.isnan(table) | (table == 0.5), np.nan, table > 0.5)
    np.testing.assert_array_equal(labels.most_likely().to_dense(), hard)
    assert (labels.flip_probabilities is None) == (not (np.nan_to_num(table) % 1).any())
    graded = labels.to_soft_signs()
    np.testing.assert_allclose(graded, np.nan_to_num(2 * table - 1), atol=1e-8)
    assert ((graded == 0) == np.isnan(table)).all()


def test_probabilities_in_every_kind_of_table():
    pd = pytest.importorskip("pandas")
    table = np.array([[0.2, 1.0], [0.0, 0.7]])
    for given_as in (table, table.tolist(), sp.csr_array(table), sp.coo_matrix(table), pd.DataFrame(table),
                     table.astype(object), np.ma.masked_array(table, table < 0)):  # fmt: skip
        np.testing.assert_array_equal(LabelMatrix.from_probabilities(given_as).to_dense(), table)
    masked = LabelMatrix.from_probabilities(np.ma.masked_array(table, table == 0))
    assert np.isnan(masked.to_dense()[1, 0])
    named = LabelMatrix.from_probabilities(pd.DataFrame(table, columns=["a", "b"]))
    assert named.names.tolist() == ["a", "b"]
    assert LabelMatrix.from_probabilities(named) is named


@pytest.mark.parametrize("bad", [1.2, -0.1, np.inf])
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_other_numbers_are_no_probabilities(bad, kind):
    with pytest.raises(ValueError, match="row 1, label 0"):
        LabelMatrix.from_probabilities(kind([[0.5, 1.0], [bad, 0.0]]))


def test_a_table_of_shares_as_labels_says_how_probabilities_are_given():
    with pytest.raises(ValueError, match="from_probabilities"):
        LabelMatrix.from_any([[0.3, 1.0]])


def test_flip_probabilities_are_checked():
    with pytest.raises(ValueError, match=r"at most 0\.5"):
        LabelMatrix(np.eye(2), flip_probabilities=sp.csr_array([[0.6, 0.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="shape"):
        LabelMatrix(np.eye(2), flip_probabilities=sp.csr_array((3, 2)))


@pytest.mark.parametrize("shape", [(2, 3, 4), (2,), (3, 2), ()])
def test_flip_probabilities_of_another_shape_are_refused(shape):
    with pytest.raises(
        ValueError, match=r"flip_probabilities has shape .* but the positives have shape \(2, 3\)"
    ):
        LabelMatrix(sp.csr_array(np.eye(2, 3, dtype=np.int8)), flip_probabilities=np.zeros(shape))
