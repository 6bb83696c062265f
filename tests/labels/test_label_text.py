"""Names and descriptions of labels: embeddings, covariances and known scores."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelweave import LabelCovariance, LabelText, Taxonomy
from labelweave.labels.text import feature_words, label_words, static_embeddings
from labelweave.labels.text import static_embeddings as of_package
from labelweave.labels.text.label_text import TextScores

RNG = np.random.default_rng(0)
E = RNG.normal(size=(4, 3))
NAMES = ["a b", "c", "d", "e"]


def test_names_become_words():
    assert label_words("role::shared-lib") == "role shared lib"
    assert label_words("sharedLib_v2") == "shared lib v2"
    assert label_words("c++") == "c++"
    assert label_words("::") == "::"
    assert feature_words(["word:game", "kind=two words", "text__mail", "size", "a:b:c"]) == [
        "game", "two words", "mail", "size", "b c"
    ]  # fmt: skip


def test_static_embeddings_are_means_of_token_vectors_without_their_package():
    pytest.importorskip("tokenizers")
    found = static_embeddings(["game", "chess game", ""])
    assert found.shape == (3, 256)
    assert not found[2].any()
    again = static_embeddings(["game"])
    np.testing.assert_array_equal(again, found[:1])
    near = static_embeddings(["chess", "board games", "email server"])
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    assert near[0] @ near[1] > near[0] @ near[2]
    assert not any(name.partition(".")[0] == "wordllama" for name in sys.modules)


def test_a_missing_package_is_named(monkeypatch):
    module = sys.modules[of_package.__module__]
    module._model.cache_clear()
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"install labelweave\[text\]"):
        LabelText(["a"])
    module._model.cache_clear()


@pytest.mark.parametrize(
    "given",
    [
        {"a b": "first", "c": "", "d": None, "e": float("nan")},
        pd.DataFrame({"name": NAMES, "text": ["first", "", None, np.nan]}),
        pd.Series(["first", "", None, np.nan], index=NAMES),
    ],
)
def test_descriptions_come_in_any_form(given):
    text = LabelText(given, E)
    assert text.names.tolist() == NAMES
    assert text.texts == ["a b first", "c", "d", "e"]
    assert LabelText(NAMES, lambda texts: [[len(t), 1.0] for t in texts]).embeddings.shape == (4, 2)


@pytest.mark.parametrize(
    ("given", "embedding", "said"),
    [
        ("ab", E, "is the text 'ab'"),
        (["a", "a"], E[:2], "'a' occurs more than once"),
        ({"a": 3}, E[:1], "description of label 'a' is 3"),
        (pd.DataFrame(np.zeros((2, 3))), E[:2], "3 columns"),
        (NAMES, E[:3], r"shape \(3, 3\) for 4 texts"),
        (NAMES, lambda texts: np.zeros(4), r"shape \(4,\)"),
    ],
)
def test_nonsense_is_refused(given, embedding, said):
    with pytest.raises(ValueError, match=said):
        LabelText(given, embedding)


def test_the_covariance_is_an_rbf_of_directions():
    text = LabelText(NAMES, E)
    directions = E - E.mean(axis=0)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    squares = np.square(directions[:, None] - directions).sum(axis=2)
    expected = 0.3 * np.eye(4) + 0.7 * np.exp(-squares / (2 * 0.25))
    np.testing.assert_allclose(text.covariance(0.7, 0.5).to_dense(), expected)
    np.testing.assert_array_equal(text.covariance(0.0).to_dense(), np.eye(4))
    for bad in ({"share": 1.5}, {"width": 0.0}, {"width": np.inf}):
        with pytest.raises(ValueError, match="share must be between 0 and 1"):
            text.covariance(**bad)
    # alone, or at the center of all others
    assert LabelText(["x"], [[1.0, 2.0]]).covariance().to_dense() == [[1.0]]
    assert np.isfinite(LabelText(["x", "y"], np.ones((2, 2))).covariance().to_dense()).all()


def test_covariances_add_and_multiply_by_name():
    text = LabelText(NAMES, E)
    above = Taxonomy.from_any({"r": ["e", "d"], "s": ["c", "a b"]})
    tree = LabelCovariance.from_taxonomy(above, NAMES[::-1])
    swapped = tree.columns(np.arange(4)[::-1]).to_dense()
    one = text.covariance()
    np.testing.assert_allclose((one + tree).to_dense(), one.to_dense() + swapped)
    np.testing.assert_allclose((one * tree).to_dense(), one.to_dense() * swapped)
    assert (one * tree).label_names.tolist() == NAMES
    with pytest.raises(ValueError, match="over 4 and 3 labels"):
        one + LabelCovariance.identity(3)
    with pytest.raises(ValueError, match="different label names"):
        one * LabelCovariance.identity(4, list("pqrs"))
    with pytest.raises(TypeError):
        one + 1


def test_known_scores_are_linear_and_scaled_on_the_rows():
    text, X = LabelText(NAMES, E), sp.random_array((30, 6), density=0.5, rng=RNG, format="csr")
    words = RNG.normal(size=(6, 3))
    mean = text.mean(words, X, strength=2.0, level=-1.0)
    scores = mean.scores(X)
    np.testing.assert_allclose(scores.mean(axis=0), -1.0)
    assert scores.std() == pytest.approx(2.0)
    expected = X @ (words - words.mean(axis=0)) @ text.directions().T
    assert np.corrcoef(scores[:, 1], expected[:, 1])[0, 1] == pytest.approx(1.0)
    by_name = text.mean([f"word:{n}" for n in range(6)], X, embedding=lambda texts: words)
    np.testing.assert_allclose(by_name.weights() * 2, mean.weights())
    assert not text.mean(words, X[:1]).weights().any()  # of one row nothing is known to vary
    with pytest.raises(ValueError, match=r"must be \(6, 3\)"):
        text.mean(words[:5], X)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_known_scores_do_not_depend_on_the_size_of_rows_and_embeddings(size):
    words, X = RNG.normal(size=(6, 3)), RNG.normal(size=(30, 6))
    large = LabelText(NAMES, np.asarray(E) * size)
    np.testing.assert_allclose(large.directions(), LabelText(NAMES, E).directions())
    assert large.mean(words, X * size, strength=2.0).scores(X * size).std() == pytest.approx(2.0)


def test_embeddings_are_kept_when_the_callers_change():
    given = np.array(E, dtype=float)
    text = LabelText(NAMES, given)
    given[:] = 0.0
    np.testing.assert_array_equal(text.embeddings, E)


def test_more_labels_are_seen_from_the_same_center():
    text = LabelText(NAMES, E)
    wide = text.with_labels({"new": "one"}, [[1.0, 0.0, 0.0]])
    assert wide.names.tolist() == [*NAMES, "new"]
    np.testing.assert_array_equal(wide.directions()[:4], text.directions())
    np.testing.assert_array_equal(wide.columns(np.arange(4)).directions(), text.directions())
    with pytest.raises(ValueError, match="'c' occurs more than once"):
        text.with_labels(["c"], [[1.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="2 dimensions, but those of existing labels have 3"):
        text.with_labels(["new"], [[1.0, 0.0]])


def test_states_make_the_same_objects():
    text = LabelText(NAMES, E)
    again = LabelText.from_state(text.to_state())
    np.testing.assert_array_equal(again.directions(), text.directions())
    scores = TextScores.of(text, E, np.eye(4))
    same = TextScores.from_state(scores.to_state())
    np.testing.assert_array_equal(same.mean(text, 1.0, 0.0).weights(), scores.mean(text, 1.0, 0.0).weights())
    assert repr(text) == "LabelText(4 labels, 3 dimensions)"
    assert len(text) == 4
