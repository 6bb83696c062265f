"""Encoders of rows: vectors of texts next to their words, their weight, and files without their code."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import labelweave as lw
from labelweave.datasets import TableVectorizer
from labelweave.labels.text import static_embeddings

NUMBERS = np.arange(60)
FRAME = pd.DataFrame({"title": [f"w{number} thing" for number in NUMBERS], "size": NUMBERS % 7})
TRUTH = np.column_stack([NUMBERS % 2, NUMBERS % 3 == 0]).astype(int)
NEW = pd.DataFrame({"title": [f"w{number} thing" for number in range(60, 90)], "size": 1})


def knows(texts):
    """Return the meaning of words that occur once, which words cannot show."""
    numbers = np.array([int("0" + "".join(filter(str.isdigit, text))) for text in texts])
    return np.column_stack([numbers % 2, numbers % 2 - 1, numbers % 3 == 0, np.ones(len(texts))]) * 5.0


def means_nothing(texts):
    return np.random.default_rng(0).normal(size=(len(texts), 20))


class Encoder:
    """Like a model with ``encode`` that cannot be copied."""

    def encode(self, texts):
        return knows(texts).astype(np.float32)

    def __deepcopy__(self, memo):
        raise AssertionError("it is as large as it is")


def _fitted(encoder, **more):
    return lw.TableModel(lw.MaxMarginClassifier(C=10), text="title", encoder=encoder, **more).fit(
        FRAME, TRUTH
    )


def test_vectors_tell_what_words_do_not():
    model = _fitted(Encoder().encode, numeric="size")
    assert model.vectorizer_.encoder_weight > 0
    np.testing.assert_array_equal(model.predict(NEW), np.column_stack([[0, 1] * 15, [1, 0, 0] * 10]))
    assert (_fitted(None).predict(NEW)[:, 0] != [0, 1] * 15).any()


def test_words_and_vectors_of_a_text_have_length_one_at_any_weight():
    frame = FRAME.assign(other=FRAME["title"])
    made = TableVectorizer(["title", "other"], numeric="size", encoder=knows, encoder_weight=3.0)
    X = made.fit_transform(frame)
    names = made.get_feature_names_out()
    assert [*names[-9:-7], names[-1]] == ["size", "title[0]", "other[3]"]
    of_title = np.array([name.startswith("title") for name in names])
    is_vector = np.array([name.endswith("]") for name in names])
    table = X.toarray()
    np.testing.assert_allclose(np.linalg.norm(table[:, of_title], axis=1), 1.0)
    vectors, words = table[:, of_title & is_vector], table[:, of_title & ~is_vector]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1) / np.linalg.norm(words, axis=1), 3.0)
    alone = TableVectorizer(["title", "other"], numeric="size").fit_transform(frame)
    np.testing.assert_allclose(made._weigh(X, 0.0).toarray(), alone.toarray())
    np.testing.assert_allclose(made.transform(frame).toarray(), alone.toarray())


def test_vectors_that_mean_nothing_are_ignored():
    rows = pd.DataFrame({"title": ["red rose", "blue sea", "red sun", "blue sky"] * 20})
    model = lw.TableModel(lw.MaxMarginClassifier(), text="title", encoder=means_nothing)
    model.fit(rows, [["red"], ["blue"]] * 40)
    assert model.vectorizer_.encoder_ is None
    assert not any(name.endswith("]") for name in model.feature_names_)


def test_the_one_call_keeps_the_weight():
    model = lw.TableModel(lw.AutoLabelClassifier(time_budget=1e-3), text="title", encoder=knows)
    frame = pd.concat([FRAME, pd.DataFrame({"title": [""], "size": 0})], ignore_index=True)
    model.fit(frame, np.vstack([TRUTH, [0, 1]]))
    assert model.vectorizer_.encoder_weight > 0
    assert model.classifier_.scaling_ is None


def test_rows_of_weight_zero_are_not_looked_at():
    weights = np.repeat([1.0, 0.0], [40, 20])
    others = np.where(weights[:, None] > 0, TRUTH, 1 - TRUTH)
    model = lw.TableModel(lw.MaxMarginClassifier(), text="title", encoder=knows)
    few = clone(model).fit(FRAME[:40], TRUTH[:40]).vectorizer_.encoder_weight
    assert model.fit(FRAME, others, sample_weight=weights).vectorizer_.encoder_weight == few
    for wrong in (weights[:40], weights * 0):
        with pytest.raises(ValueError, match=r"(?i)weight"):
            model.fit(FRAME, TRUTH, sample_weight=wrong)


def test_clones_and_searches_keep_the_callable():
    encode = Encoder().encode
    model = lw.TableModel(lw.MaxMarginClassifier(), text="title", encoder=encode)
    assert clone(model).encoder is encode
    assert clone(TableVectorizer("title", encoder=encode)).encoder is encode
    search = GridSearchCV(model, {"classifier__C": [1.0]}, cv=2).fit(FRAME, TRUTH)
    assert search.best_estimator_.encoder is encode


def test_a_file_keeps_no_code_and_asks_for_the_encoder(reloaded):
    model = _fitted(knows)
    again = reloaded(model)
    assert again.encoder is None
    with pytest.raises(
        ValueError, match=r"needs its encoder: it was fitted with .*knows, which model files cannot hold"
    ):
        again.predict(NEW)
    for other in (lambda texts: knows(texts)[:, ::-1], lambda texts: knows(texts)[:, :3], "static"):
        with pytest.raises(ValueError, match=r"other vectors than .*knows, .* in the same version"):
            again.set_params(encoder=other).predict(NEW)
    again.set_params(encoder=lambda texts: knows(texts) + 1e-6)
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


def test_a_file_of_static_vectors_works_at_once(tmp_path, monkeypatch):
    texts = pd.DataFrame({"title": ["dog", "cat", "horse", "car", "train", "ship", "cow", "bus"] * 2})
    model = lw.TableModel(lw.MaxMarginClassifier(), text="title", encoder="static")
    model.fit(texts.assign(title=texts["title"] + [f" {n}" for n in range(16)]), [[0], [0], [0], [1]] * 4)
    assert model.vectorizer_.encoder_.name == "static"
    model.save(tmp_path / "m.lw")
    again = lw.load(tmp_path / "m.lw")
    assert again.encoder == "static"
    np.testing.assert_array_equal(again.decision_function(texts), model.decision_function(texts))
    monkeypatch.setattr("labelweave.datasets.text_encoders.digest_of_vectors", lambda: "another")
    with pytest.raises(ValueError, match="The encoder static returns other vectors than"):
        lw.load(tmp_path / "m.lw").predict(texts)
    monkeypatch.undo()
    names = static_embeddings.__globals__
    monkeypatch.setitem(names, "find_spec", lambda name: None)
    monkeypatch.setitem(names, "_model", names["_model"].__wrapped__)
    with pytest.raises(ImportError, match=r"need wordllama .*install labelweave\[text\]"):
        lw.load(tmp_path / "m.lw").predict(texts)


def test_vectors_that_tell_of_the_source_alone_do_not_count_for_other_sources():
    sources, random = NUMBERS // 3, np.random.default_rng(0)
    told = random.integers(0, 2, 60)
    rows = pd.DataFrame({"title": [f"w{n} {('red', 'blue')[k]}" for n, k in zip(NUMBERS, told, strict=True)]})
    truth = np.column_stack([told, random.integers(0, 2, 20)[sources]])

    def remembers(texts):
        numbers = [int("0" + "".join(filter(str.isdigit, text))) for text in texts]
        return np.eye(20)[np.array(numbers) // 3 % 20]

    model = lw.TableModel(
        lw.AutoLabelClassifier(time_budget=1e-3, members=["linear"]), text="title", encoder=remembers
    )
    assert model.fit(rows, truth).vectorizer_.encoder_weight > 0
    grouped = model.fit(rows, truth, groups=sources)
    assert grouped.vectorizer_.encoder_ is None
    with pytest.raises(ValueError, match="60"):
        model.fit(rows, truth, groups=sources[:50])
