"""The messages that hostile inputs provoke, kept in a file for readers, are those of today, and short."""

from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")
pytest.importorskip("networkx")
messages = pytest.importorskip("attacks.messages")

from attacks.contract_table import ContractWorld  # noqa: E402
from attacks.input_contracts import limits  # noqa: E402

LINES = messages.KEPT.read_text(encoding="utf-8").splitlines()


def test_messages_are_many_and_short():
    said = [line.partition(" -> ")[2] for line in LINES]
    assert len(set(said)) >= 150
    assert [one for one in said if messages.n_words(one) > messages.MOST_WORDS] == []


def test_quoted_names_lists_and_numbers_are_no_words():
    said = "average is 'no such'; pass one of micro_f1, macro_f1, example_f1 or `None` for 3 labels."
    assert messages.n_words(said) == len("average is pass one of for labels".split())


@pytest.mark.filterwarnings("ignore")
def test_kept_messages_are_those_of_today(tmp_path_factory):
    """``python -m attacks.messages`` writes the file; it also finds the new ones."""
    found = []
    with limits():
        world = ContractWorld(0, Path(tmp_path_factory.mktemp("messages")))
        for line in LINES:
            provoked, _, _ = line.partition(" -> ")
            said = messages.provoked(world, *provoked.split(" | "))
            found.append(f"{provoked} -> {said and said[0]}")
    assert found == LINES
