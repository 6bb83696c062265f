import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

from labelweave.datasets import TableVectorizer
from labelweave.datasets.columns import as_list
from labelweave.datasets.raw_table import RawTable
from labelweave.labels.label_names import as_text
from labelweave.model_files import ModelFileError, save_object
from labelweave.model_files.storable import made_of_state

pd = pytest.importorskip("pandas")

FRAME = pd.DataFrame(
    {
        "title": ["red apple red", "green pear", "", "red pear tree"],
        "note": ["one", "two", "two", "three"],
        "kind": ["a", "b", None, "a"],
        "size": [1.0, 2.0, 4.0, 5.0],
        "flat": [3.0, 3.0, 3.0, 3.0],
    }
)


def vectorizer(**options):
    return TableVectorizer(["title", "note"], "kind", ["size", "flat"], **options)


def test_blocks_are_scikit_learns():
    made = vectorizer(ngram_range=(1, 2), sublinear_tf=True)
    X = made.fit_transform(FRAME).toarray()
    peer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    text = peer.fit_transform(FRAME["title"]).toarray()
    np.testing.assert_allclose(X[:, : text.shape[1]], text)
    names = made.get_feature_names_out()
    assert names[0] == f"title:{peer.get_feature_names_out()[0]}"
    assert list(names[-5:]) == ["kind=", "kind=a", "kind=b", "size", "flat"]
    np.testing.assert_array_equal(X[:, -5:-2], [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(X[:, -2], (FRAME["size"] - 3) / np.sqrt(2.5))
    np.testing.assert_array_equal(X[:, -1], 0)


@pytest.mark.parametrize("n", [0, 1, 9])
def test_categories_are_those_of_scikit_learns_encoder(n):
    draw = np.random.default_rng(n)
    training, later = (pd.DataFrame(draw.choice(list("abcde"), (9, 2)), columns=["k", "m"]) for _ in "ab")
    made = TableVectorizer(categorical=["k", "m"]).fit(training)
    later = later.iloc[:n].replace("a", "?")
    peer = OneHotEncoder(categories=[np.array(values, object) for values in made.categories_],
                         handle_unknown="ignore").fit(training.to_numpy(object))  # fmt: skip
    found = made.transform(later)
    assert found.dtype == np.float64
    expected = peer.transform(later.to_numpy(object)).toarray() if n else np.zeros((0, found.shape[1]))
    np.testing.assert_array_equal(found.toarray(), expected)
    made.fit(later.assign(m="b") if n else training)  # whose values stand at other places
    assert made.transform(later.assign(m="b")).shape[1] == sum(map(len, made.categories_))


CELLS = {
    "text": ["a", "", "b"],
    "text with gaps": ["a", None, np.nan],
    "text of pandas": pd.array(["a", pd.NA, "b"], dtype="string"),
    "all missing": [None, None, None],
    "mixed": ["a", 1, 2.0],
    "numbers": [1.0, np.nan, 2.5],
    "whole": [1, 2, 3],
    "whole with gaps": pd.array([1, pd.NA, 3], dtype="Int64"),
    "truth": [True, False, True],
    "times": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
    "categories of text": pd.Categorical(["a", "b", None]),
    "categories": pd.Categorical([1, 2, None]),
    "text of NumPy": np.array([np.str_("a"), None, "b"], object),
}


@pytest.mark.parametrize("kind", CELLS)
def test_cells_are_texts_and_missing_ones_empty(kind):
    column = pd.Series(CELLS[kind])
    expected = [as_text(cell) for cell in column.astype(object).mask(column.isna(), "").tolist()]
    found = RawTable.of_frame(pd.DataFrame({"column": column}))
    assert as_list(found.texts("column", joins=False)) == expected


def test_a_gap_among_whole_numbers_leaves_the_others_what_they_are():
    made = TableVectorizer(categorical="kind").fit(pd.DataFrame({"kind": [10, 20]}))
    later = made.transform(pd.DataFrame({"kind": [10, None, 20]})).toarray()
    np.testing.assert_array_equal(later, [[1, 0], [0, 0], [0, 1]])
    polars = pytest.importorskip("polars").DataFrame({"kind": [2**60 + 1, None]})
    assert TableVectorizer(categorical="kind").fit(polars).categories_ == [["", str(2**60 + 1)]]


@pytest.mark.parametrize(("training", "later"), [(["1.0", "2"], [1.0, 2.0]), (["1", "2"], ["1.0", "2.0"])])
def test_whole_numbers_are_one_category_with_a_point_and_without(training, later):
    made = TableVectorizer(categorical="kind").fit(pd.DataFrame({"kind": training}))
    found = made.transform(pd.DataFrame({"kind": later})).toarray()
    np.testing.assert_array_equal(found[:, -2:], np.eye(2))
    both = TableVectorizer(categorical="kind").fit(pd.DataFrame({"kind": ["1", "1.0"]}))
    np.testing.assert_array_equal(both.transform(pd.DataFrame({"kind": ["1", "1.0"]})).toarray(), np.eye(2))


def test_a_column_of_unknown_categories_alone_is_told():
    made = TableVectorizer(categorical="kind").fit(pd.DataFrame({"kind": ["red", "blue"]}))
    strange = pd.DataFrame({"kind": ["rot", "blau"] * 5})
    with pytest.warns(UserWarning, match="none of 10 rows has a value of column 'kind'"):
        assert not made.transform(strange).nnz
    strange.loc[3, "kind"] = "red"
    assert made.transform(strange).nnz == 1


@pytest.mark.parametrize("options", [{}, {"min_df": 2, "sublinear_tf": True}, {"ngram_range": (1, 2)}])
def test_state_rebuilds_an_equal_transformer(options):
    made = TableVectorizer("title", "kind", "size", missing_numeric="mean", **options).fit(FRAME)
    state = made.to_state()
    arrays = [*state.pop("idf"), state.pop("means"), state.pop("scales")]
    words = state.pop("words")
    assert words[0].tobytes().decode().split("\n") == [*made.text_vectorizers_[0].get_feature_names_out(), ""]
    assert all(isinstance(array, np.ndarray) for array in arrays)
    plain = json.loads(json.dumps(state))
    again = TableVectorizer.from_state(
        {**plain, "words": words, "idf": arrays[:-2], "means": arrays[-2], "scales": arrays[-1]}
    )
    later = pd.DataFrame({"title": ["red kiwi pear"], "kind": ["new"], "size": [np.nan]})
    for frame in (FRAME, later):
        left, right = made.transform(frame), again.transform(frame)
        np.testing.assert_array_equal(left.toarray(), right.toarray())
    assert list(made.get_feature_names_out()) == list(again.get_feature_names_out())
    assert again.to_state().keys() == made.to_state().keys()


def test_words_in_files_are_lines_of_bytes(tmp_path):
    made = TableVectorizer("title").fit(FRAME)
    state = made.to_state()
    words = made.text_vectorizers_[0].get_feature_names_out().tolist()
    save_object(tmp_path / "m.lw", made)
    content = (tmp_path / "m.lw").read_bytes()
    assert content.count(b"apple") == content.count(b"apple\n") == 1  # not in the header
    again = made_of_state("TableVectorizer", TableVectorizer, state)
    np.testing.assert_array_equal(again.transform(FRAME).toarray(), made.transform(FRAME).toarray())
    for kept in (words, state["words"][0][:-2], np.frombuffer(b"\xff\n", np.uint8), np.zeros(0, np.uint8)):
        with pytest.raises((ModelFileError, UnicodeDecodeError)):
            made_of_state("TableVectorizer", TableVectorizer, state | {"words": [kept]})


def test_a_long_word_does_not_widen_the_other_names():
    made = TableVectorizer("title").fit(pd.DataFrame({"title": ["a few short words", "x" * 20_000]}))
    names = made.get_feature_names_out()
    assert names.nbytes < 100
    assert names.tolist()[:2] == ["title:few", "title:short"]


def test_lists_of_ids_have_words_of_one_digit():
    frame = pd.DataFrame({"ids": [[1, 2, 31], [2], [], [31]], "text": ["1 of 31", "a 2", "31 of 4", "of"]})
    vectorizer = TableVectorizer(text=["ids", "text"]).fit(frame)
    assert vectorizer.get_feature_names_out().tolist() == ["ids:1", "ids:2", "ids:31", "text:31", "text:of"]
    written = frame.assign(ids=frame["ids"].astype(str))
    np.testing.assert_array_equal(
        vectorizer.transform(written).toarray(), vectorizer.transform(frame).toarray()
    )


def test_each_kind_alone():
    for kind, name in [("text", "title"), ("categorical", "kind"), ("numeric", "size")]:
        made = TableVectorizer(**{kind: name})
        again = TableVectorizer.from_state(made.fit(FRAME).to_state())
        np.testing.assert_array_equal(again.transform(FRAME).toarray(), made.transform(FRAME).toarray())


def test_numbers_far_from_the_training_rows_are_refused_by_place():
    made = TableVectorizer(numeric="size").fit(pd.DataFrame({"size": [1e-60, 3e-60]}))
    later = pd.DataFrame({"size": [2e-60, 1.0]})
    with pytest.raises(ValueError, match=r"Row 1, column 'size' is 1, which is 1e\+60 standard deviations"):
        made.transform(later)
    assert made.transform(later[:1]).toarray().tolist() == [[0.0]]


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="No column is"):
        TableVectorizer()
    with pytest.raises(ValueError, match="missing_numeric is 'zero'"):
        TableVectorizer("title", missing_numeric="zero")
    for given in ({}, (2, 1), (0, 1), (1, 2, 3)):
        with pytest.raises(ValueError, match="pass two sizes of n-grams"):
            TableVectorizer("title").set_params(ngram_range=given)
    with pytest.raises(NotFittedError):
        TableVectorizer("title").transform(FRAME)
    with pytest.raises(ValueError, match="no column 'other'; use one of its columns, such as"):
        TableVectorizer("other").fit(FRAME)
    with pytest.raises(ValueError, match="text column 'title'"):
        TableVectorizer("title").fit(FRAME[2:3])
    with pytest.raises(ValueError, match=r"Row 1, column 'size' is no number; .* missing_numeric='mean'"):
        TableVectorizer(numeric="size").fit(pd.DataFrame({"size": [1, np.nan]}))
    with pytest.raises(ValueError, match="'size' has no number in any row"):
        TableVectorizer(numeric="size", missing_numeric="mean").fit(pd.DataFrame({"size": [np.nan]}))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,000", "?", "3%"], [1000, np.nan, 3]),
        ([1, "2", None], [1, 2, np.nan]),
        (pd.array([1, None, 2], "Int64"), [1, np.nan, 2]),
        (pd.array(["1", None, "$2"], "string"), [1, np.nan, 2]),
        ([True, False, True], [1, 0, 1]),
    ],
)
def test_numbers_of_a_frame_are_read_as_those_of_a_file(cells, expected):
    np.testing.assert_array_equal(RawTable.of_frame(pd.DataFrame({"a": cells})).numbers("a"), expected)


@pytest.mark.parametrize("cells", [["1", "x", "2"], [1, "x", 2], ["1,000", "x", "2"]])
def test_what_is_no_number_in_a_frame_is_refused_by_its_place(cells):
    with pytest.raises(ValueError, match="Row 1, column 'a' is 'x'; it must be a finite number"):
        TableVectorizer(numeric=["a"]).fit(pd.DataFrame({"a": cells}))
