"""Show the records in ``benchmarks/results``, with their origin.

Every benchmark measures; this command alone measures nothing.  Every line ends with the date, processor,
cores and commit of its figures, or states which of these are not recorded.  A record with the table of its
command is shown as that table, others figure by figure.

    python -m benchmarks                                   # all records
    python -m benchmarks --show-recorded ranking_peers papers/usps
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from benchmarks.frame import RESULTS, Run, flag, mark, read_options

_ORIGIN = ("processor", "cores", "date", "commit")
_NOT_FIGURES = {*_ORIGIN, "python", "labelweave", "machine", "measured"}
_MOST = 12  # numbers of a list that a line shows


def main(words: Sequence[str] | None = None) -> int:
    names = sorted(path.relative_to(RESULTS).with_suffix("").as_posix() for path in RESULTS.rglob("*.json"))
    flags = {"show_recorded": flag([], choices=names, nargs="+", metavar="NAME")}
    asked = read_options(__doc__, words, **flags).show_recorded
    records = {name: json.loads((RESULTS / f"{name}.json").read_text("utf-8")) for name in asked or names}
    if not asked:
        for name, record in records.items():
            print(name + _mark(known for _, known in _figures(record, name, {})))
    for name in asked:
        print("\n".join(recorded_lines(records[name], name)))
    return 0


def recorded_lines(record: dict[str, Any], name: str) -> list[str]:
    if "table" in record:
        return [line + _mark([_origin(record)]) for line in record["table"]]
    return [line + _mark([known]) for line, known in _figures(record, name, {})]


def _figures(value: Any, path: str, known: Run) -> Iterator[tuple[str, Run]]:
    """Return lines and their origin: the numbers and words of a part, then the parts in it."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    if isinstance(value, dict):
        known = _origin(value) or known
        items = [(name, part) for name, part in items if name not in _NOT_FIGURES]
    plain = [(name, part) for name, part in items if _is_plain(part)]
    if plain:
        yield f"{path}: {'; '.join(f'{name} {_text(part)}' for name, part in plain)}", known
    parts = [(name, part) for name, part in items if not _is_plain(part)]
    if any(isinstance(part, dict) and _origin(part) for _, part in parts):  # the rest dates its parts
        known = {key: known[key] for key in ("processor", "cores") if key in known}
    yield from chain.from_iterable(_figures(part, f"{path}, {name}", known) for name, part in parts)


def _origin(part: dict[str, Any]) -> Run:
    """Return what a part states about its origin."""
    own = part.get("measured") or part.get("machine") or part
    return {key: own[key] for key in _ORIGIN if key in own}


def _mark(origins: Iterable[Run]) -> str:
    return mark({}, [{"measured": known} for known in origins])


def _is_plain(part: Any) -> bool:
    return not isinstance(part, dict | list) or (
        isinstance(part, list) and not any(isinstance(one, dict | list) for one in part)
    )


def _text(part: Any) -> str:
    if isinstance(part, list):
        shown = part if len(part) <= _MOST else [*part[: _MOST - 1], "...", part[-1]]
        return f"({', '.join(map(_text, shown))})"
    return f"{part:.6g}" if isinstance(part, float) else str(part)


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe early, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    raise SystemExit(code)
