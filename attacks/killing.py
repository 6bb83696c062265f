"""The command line of attackers that kill: how many, of which kinds, from which seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NoReturn

from benchmarks.frame import flag, read_options, several


def main(
    about: str | None,
    counted: tuple[str, int],
    chosen_from: tuple[str, Iterable[str]],
    run: Callable[[list[str], int, int], tuple[Counter[str], list[str]]],
    say: Callable[[Counter[str]], str],
) -> NoReturn:
    (number, default), (kinds, known) = counted, chosen_from
    flags = {number: flag(default, "in all, of every kind in turn"), kinds: several(known)}
    chosen = vars(read_options(about, **flags, seed=flag(0, "of what is drawn")))
    counts, wrong = run(chosen[kinds], chosen[number], chosen["seed"])
    print(f"{say(counts)}, {len(wrong)} wrong", *wrong, sep="\n  ")
    raise SystemExit(bool(wrong))
