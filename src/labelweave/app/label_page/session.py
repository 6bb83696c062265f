"""A labeling session: known labels, the next questions, and a model fitted in the background.

Answers are on disk before they count.  One thread fits the model to the known labels and chooses the next
questions; the lock is held to read and change known labels, never during a fit.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.app.active import answers, suggest_queries
from labelweave.app.active.answers import NO, NOTHING, UNKNOWN, YES, Answer, AnswerFile, last_answers, merged
from labelweave.estimators import KernelLogisticClassifier, MaxMarginClassifier
from labelweave.labels import LabelMatrix

_BATCH = 20  # questions per batch
_MOST_KERNEL_ROWS = 3000
_LONGEST_TEXT = 20_000
_SAID = (YES, NO, UNKNOWN)

Entry = tuple[str, str]


class Question(NamedTuple):
    """An entry to ask about: the model's probability, None before the first fit, and the reason to ask."""

    row: str
    label: str
    guess: float | None
    why: str


class LabelSession:
    """Rows, their known labels, and the questions about them.

    X (n, d): features, dense or CSR.
    Y (n, L): the labels in the data.
    path: the file of answers, created or continued.
    ids, texts: of the rows; ids are numbers by default.
    model: an unfitted classifier; the default depends on the size.
    Raises DataFileError if answers are of other rows or labels.
    """

    def __init__(
        self, X: Any, Y: LabelMatrix, path: Any, *, ids: Any = None,
        text_of: Callable[[int], str] = lambda row: "", model: Any = None,
    ) -> None:  # fmt: skip
        self.X, self.Y, self.path = X, Y, path
        self.places = answers.row_places(ids, len(Y), path)
        self.names = Y.words
        self._text_of = text_of
        self.model = _usual_model(X) if model is None else model
        self.file = AnswerFile(path)
        self.history = answers.read_answers(path)
        merged(Y, self.places, self._said(), path)  # raises for answers of other data
        self.questions: list[Question] = []
        self.asked: dict[Entry, str] = {}  # of the visible row
        self.curve: list[tuple[int, float]] = []
        self.trouble: str | None = None
        self._lock, self._news, self._ends = threading.RLock(), threading.Event(), False
        self._fitted = -1
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> LabelSession:
        """Choose the first questions, and start to fit in the background."""
        self._refit()
        self._thread.start()
        return self

    def close(self) -> None:
        self._ends = True
        self._news.set()
        if self._thread.is_alive():
            self._thread.join()
        self.file.close()

    def answer(self, row: str, label: str, said: str) -> None:
        """Store an answer, first on disk, then for the next fit.

        Raises ValueError if the entry or the answer is invalid.
        """
        if row not in self.places or label not in self.names:
            raise ValueError(f"There is no entry {row!r}, {label!r}.")
        if said not in _SAID:
            raise ValueError(f"The answer is {said!r}; it must be one of {', '.join(_SAID)}.")
        with self._lock:
            self._keep(Answer(row, label, said))
            if not any(one.row == row for one in self.questions):
                self.asked = {}
            self.asked[row, label] = said
            self.questions = [one for one in self.questions if (one.row, one.label) != (row, label)]
            self._news.set()

    def undo(self) -> bool:
        """Undo the last valid answer, and ask again; return whether there was one."""
        with self._lock:
            said = self._said()
            last = next((one for one in reversed(self.history) if (one.row, one.label) in said), None)
            if last is None:
                return False
            self._keep(Answer(last.row, last.label, NOTHING))
            self.asked.pop((last.row, last.label), None)
            again = Question(last.row, last.label, None, "You undid this answer.")
            self.questions = [again, *(one for one in self.questions if one[:2] != again[:2])]
            self._news.set()
            return True

    def _keep(self, answer: Answer) -> None:
        self.file.add(answer)
        self.history.append(answer)

    def _said(self) -> dict[Entry, str]:
        return last_answers(self.history)

    def state(self) -> dict[str, Any]:
        """Return the content of the page, as numbers, texts, lists and dictionaries."""
        with self._lock:
            said = self._said()
            known = self.Y.observed_counts().sum() if not said else self._known(said).observed_counts().sum()
            total = len(self.Y) * self.Y.n_labels
            left = int(total - known) - sum(one == UNKNOWN for one in said.values())
            first = self.questions[0] if self.questions else None
            return {
                "row": None if first is None else self._row(first.row),
                "answered": len(said),
                "known": int(known),
                "entries": total,
                "left": left,
                "can_undo": bool(said),
                "is_fitting": self._news.is_set() or self._fitted < len(self.history),
                "is_done": first is None and left <= 0,
                "curve": [list(point) for point in self.curve],
                "trouble": self.trouble,
            }

    def _row(self, row: str) -> dict[str, Any]:
        """Return a row with the entries to ask about, those that wait first at the end."""
        waiting = [one for one in self.questions if one.row == row]
        answered = [{"label": label, "said": said} for (of, label), said in self.asked.items() if of == row]
        entries = [{"label": one.label, "guess": one.guess, "why": one.why} for one in waiting]
        text = self._text_of(self.places[row])[:_LONGEST_TEXT]
        return {"id": row, "text": text, "entries": entries, "answered": answered}

    def _work(self) -> None:
        while not self._ends:
            self._news.wait()
            self._news.clear()
            if not self._ends:
                self._refit()

    def _refit(self) -> None:
        """Fit the model to the known labels, and choose the next questions."""
        with self._lock:
            said, count = self._said(), len(self.history)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                known = self._known(said)
                model = self.model.fit(self.X, known) if _is_enough(known) else None
                # unknown answers count as known, to avoid asking again
                closed = {entry: NO if one == UNKNOWN else one for entry, one in said.items()}
                found = suggest_queries(model, self.X, _BATCH, self._known(closed))
                level = None if model is None else _expected_f1(model, self.X, found.cut)
        except Exception as error:  # the page must survive any error of a model
            self.trouble = f"The model could not be fitted: {error}"
            self._fitted = count
            return
        with self._lock:
            self.trouble, self._fitted = None, count
            if level is not None:
                # fewer answers, after undoing some
                self.curve = [*(point for point in self.curve if point[0] < len(said)), (len(said), level)]
            self._queue(self._questions(found, model is not None))

    def _known(self, said: dict[Entry, str]) -> LabelMatrix:
        return merged(self.Y, self.places, said, self.path)

    def _questions(self, found: Any, has_model: bool) -> list[Question]:
        ids, questions = list(self.places), []
        for place, (row, label) in enumerate(zip(found.rows, found.labels, strict=True)):
            guess = float(found.probabilities[place]) if has_model else None
            why = _why(guess, found.cut, int(found.informs[place]))
            questions.append(Question(ids[row], self.names[label], guess, why))
        return questions

    def _queue(self, fresh: list[Question]) -> None:
        """Append new questions after the visible row, grouped by row."""
        said = self._said()
        shown = self.questions[0].row if self.questions else None
        kept = [one for one in self.questions if one.row == shown]
        entries = {one[:2] for one in kept}
        fresh = [one for one in fresh if one[:2] not in said and one[:2] not in entries]
        order: dict[str, list[Question]] = {}
        for one in [*kept, *fresh]:
            order.setdefault(one.row, []).append(one)
        self.questions = [one for row in order.values() for one in row]


def _why(guess: float | None, cut: float, informs: int) -> str:
    rows = f"{informs} other row{'' if informs == 1 else 's'}"
    tells = f"The answer informs {rows}." if informs else "Few other rows are like this one."
    if guess is None:
        return f"The model is not fitted yet. {tells}"
    side = "above" if guess >= cut else "below"
    return f"Labels are predicted above {cut:.2f}, and the probability is {side}. {tells}"


def _is_enough(known: LabelMatrix) -> bool:
    """Whether a label has both positive and negative rows to learn from."""
    positive, seen = known.positive_counts(), known.observed_counts()
    return bool(((positive > 0) & (positive < seen)).any())


def _expected_f1(model: Any, X: Any, cut: float) -> float | None:
    """Return the micro-F1 that the model expects of its own label sets."""
    if not hasattr(model, "predict_proba"):
        return None
    shares = np.asarray(model.predict_proba(X))
    is_predicted = shares >= cut
    total = float(shares.sum() + is_predicted.sum())
    return 2.0 * float(shares[is_predicted].sum()) / total if total else None


def _usual_model(X: Any) -> Any:
    """Choose a model with warm starts that is fitted in a second."""
    if X.shape[0] > _MOST_KERNEL_ROWS:
        return MaxMarginClassifier(warm_start=True, scaling="unit" if sp.issparse(X) else "standard")
    words: Any = {"kernel": "linear", "scaling": "unit"} if sp.issparse(X) else {"scaling": "standard"}
    return KernelLogisticClassifier(**words, hyperparameters="fixed", warm_start=True)
