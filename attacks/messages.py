"""Collect the messages that hostile inputs provoke, to be read by a person who does not know the code.

    python -m attacks.messages                # write tests/contracts/messages.txt; minutes

Among all calls of :mod:`attacks.input_contracts` with one hostile value, the first that reaches each
``raise`` statement of the library is kept.  The file has one line per statement: the cause, "->", the
message.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.frame import command, flag

from attacks.contract_table import CONTRACTS, ContractWorld
from attacks.input_contracts import RAISE, frames_of, hostile_values, limits, valid_arguments
from attacks.public_names import is_of_library

KEPT = Path(__file__).parents[1] / "tests" / "contracts" / "messages.txt"
MOST_WORDS = 30
_SLOW = ("display.", "report.", "compare", "AutoLabelClassifier", "LabelGraphClassifier", "noise.")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_LIST = re.compile(r"(?:[\w.()]+, ){2,}(?:(?:and|or) )?[\w.()]+")
_SET = re.compile(r"\{('[^{}]*)\}")
_WORD = re.compile(r"\S*[A-Za-z]\S*")


def n_words(message: str) -> int:
    """Count words; quoted names and values, lists of three and more of them, and numbers do not count."""
    return len(_WORD.findall(_LIST.sub("", _QUOTED.sub("", message))))


def _sorted(found: re.Match[str]) -> str:
    """Sort the entries of a printed set, whose order differs between processes."""
    return "{" + ", ".join(sorted(found[1].split(", "))) + "}"


def provoked(world: ContractWorld, name: str, argument: str, what: str) -> tuple[str, tuple[Any, int]] | None:
    """Call with one hostile value; return the message and the library's ``raise`` statement, or None."""
    contract = CONTRACTS[name]
    value = hostile_values(world, contract, argument)[what]
    try:
        contract.call(world, **valid_arguments(world, contract, {}) | {argument: value})
    except (ValueError, TypeError) as error:
        code, at = list(frames_of(error.__traceback__))[-1]
        found = str(error).replace(f"{world.folder}/", "")
        if is_of_library(code.co_filename) and code.co_code[at] == RAISE:
            return _SET.sub(_sorted, re.sub(r" at 0x[0-9a-f]+", "", found)), (code, at)
    except Exception:  # messages of the operating system, or found by attacks.input_contracts
        return None
    return None


def collected(world: ContractWorld) -> Iterator[str]:
    """Yield one line per ``raise`` statement; values that are nearly valid come first."""
    seen = set[tuple[Any, int]]()
    for name in CONTRACTS:
        for argument in () if name.startswith(_SLOW) else CONTRACTS[name].arguments:
            values = hostile_values(world, CONTRACTS[name], argument)
            for what in sorted(values, key=lambda what: not what.startswith("valid")):
                found = provoked(world, name, argument, what)
                if found is not None and found[1] not in seen:
                    seen.add(found[1])
                    yield f"{name} | {argument} | {what} -> {found[0]}"


def repeated(lines: list[str]) -> list[str]:
    """Provoke the messages of lines again, in a new folder; those that depend on earlier calls differ."""
    found = []
    with limits(), tempfile.TemporaryDirectory() as folder:
        world = ContractWorld(0, Path(folder))
        for call in (line.partition(" -> ")[0] for line in lines):
            again = provoked(world, *call.split(" | "))
            found.append(f"{call} -> {again and again[0]}")
    return found


@command(out=flag(KEPT, "the file of the messages"))
def main(chosen: Any) -> None:
    with limits(), tempfile.TemporaryDirectory() as folder:
        lines = sorted(collected(ContractWorld(0, Path(folder))))
    while (
        kept := [line for line, again in zip(lines, repeated(lines), strict=True) if line == again]
    ) != lines:
        lines = kept
    Path(chosen.out).write_text("\n".join([*lines, ""]), encoding="utf-8")
    print(f"{len(lines)} messages")
