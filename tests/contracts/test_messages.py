"""The messages that hostile inputs provoke, stored in a file for readers, are current and short."""

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")
pytest.importorskip("networkx")
messages = pytest.importorskip("attacks.messages")

LINES = messages.KEPT.read_text(encoding="utf-8").splitlines()


def test_messages_are_many_and_short():
    said = [line.partition(" -> ")[2] for line in LINES]
    assert len(set(said)) >= 150
    assert [one for one in said if messages.n_words(one) > messages.MOST_WORDS] == []


def test_quoted_names_lists_and_numbers_are_no_words():
    said = "average is 'no such'; pass one of micro_f1, macro_f1, example_f1 or `None` for 3 labels."
    assert messages.n_words(said) == 8


@pytest.mark.filterwarnings("ignore")
def test_kept_messages_are_those_of_today():
    """``python -m attacks.messages`` writes the file; it also finds the new ones."""
    assert messages.repeated(LINES) == LINES
