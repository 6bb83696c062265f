"""Collect the messages that hostile inputs provoke, for a person who does not know the code to read.

    python -m attacks.messages                # write tests/contracts/messages.txt; minutes

Of all calls of :mod:`attacks.input_contracts` with one hostile value those are kept that come first to a
``raise`` statement of the library.  The file has one line for each: what provoked it, "->", the message.
"""

from __future__ import annotations

import re
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.frame import command, flag

from attacks.contract_table import CONTRACTS, ContractWorld
from attacks.input_contracts import hostile_values, limits, valid_arguments
from attacks.public_names import is_of_library

KEPT = Path(__file__).parents[1] / "tests" / "contracts" / "messages.txt"
MOST_WORDS = 30
_SLOW = ("display.", "report.", "compare", "AutoLabelClassifier", "LabelGraphClassifier", "noise.")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_WORD = re.compile(r"\S*[A-Za-z]\S*")


def n_words(message: str) -> int:
    """Count the words of a message; quoted names and values, numbers and shapes do not count."""
    return len(_WORD.findall(_QUOTED.sub("", message)))


def provoked(world: ContractWorld, name: str, argument: str, what: str) -> Exception | None:
    """Return the error of a call in which one argument is hostile, None if there is none."""
    contract = CONTRACTS[name]
    value = hostile_values(world, contract, argument)[what]
    try:
        contract.call(world, **valid_arguments(world, contract, {}) | {argument: value})
    except (ValueError, TypeError) as error:
        return error
    except Exception:  # others are words of the system, or found by attacks.input_contracts
        return None
    return None


def message(world: ContractWorld, error: Exception) -> str:
    """Return the message of an error, without the folder of the files and addresses in memory."""
    found = str(error).replace(f"{world.folder}/", "")
    return re.sub(r" at 0x[0-9a-f]+", "", found)


def collected(world: ContractWorld) -> Iterator[str]:
    """Yield a line for each statement of the library that raises; of every argument all hostile values."""
    seen = set[tuple[str, int | None]]()
    for name, contract in CONTRACTS.items():
        if name.startswith(_SLOW):
            continue
        for argument in contract.arguments:
            for what in hostile_values(world, contract, argument):
                error = provoked(world, name, argument, what)
                last = traceback.extract_tb(error.__traceback__)[-1] if error else None
                if last and is_of_library(last.filename) and (last.filename, last.lineno) not in seen:
                    seen.add((last.filename, last.lineno))
                    yield f"{name} | {argument} | {what} -> {message(world, error)}"  # type: ignore[arg-type]


@command(out=flag(KEPT, "the file of the messages"))
def main(chosen: Any) -> None:
    with limits(), tempfile.TemporaryDirectory() as folder:
        lines = sorted(collected(ContractWorld(0, Path(folder))))
    Path(chosen.out).write_text("\n".join([*lines, ""]), encoding="utf-8")
    print(f"{len(lines)} messages")
