"""Calls that are refused, listed in files beside the tests that run them.

After ">>> " a list defines names; after "$" stands a call, or several below each other, whose "{}" is filled
in by the lines below, each with its message, which is after the kind of error where that is not a ValueError;
" ... " skips words.  Calls run in a folder of their own, where ``file(name, text)`` writes a file.
"""

import re
from contextlib import chdir
from functools import cache
from pathlib import Path

import numpy as np
import pytest


@cache
def _names(path):
    """Return the names that a list defines, and those of the library."""
    import labelweave as lw

    names = {name: getattr(lw, name) for name in lw.__all__} | {"lw": lw, "np": np}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(">>> "):
            exec(line[4:], names)
    return names


def _cases(path):
    calls, before = ["{}"], ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("$"):
            calls = [*(calls if before.startswith("$") else []), line[2:] or "{}"]
        elif " -> " in line and not line.startswith((">>> ", "# ")):
            own, _, said = line.partition(" -> ")
            for call in calls:
                yield pytest.param(call.replace("{}", own), said, id=call.replace("{}", own))
        before = line


def refusals(file):
    """Return a test of each call in the list beside a file of tests: it is refused in one sentence."""
    path = Path(file).parent / "refused.txt"

    @pytest.mark.parametrize(("call", "said"), [*_cases(path)])
    def test(call, said, tmp_path):
        def file(name, text):
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
            return tmp_path / name

        kind, words = re.fullmatch(r"(?:(\w+Error): )?(.*)", said).groups()
        parts = ".*".join(map(re.escape, words.split(" ... ")))
        names = _names(path) | {"file": file}
        with chdir(tmp_path), pytest.raises(Exception, match=f"(?s){parts}") as refused:
            eval(call, names)
        assert (kind or "ValueError") in {one.__name__ for one in refused.type.__mro__}
        assert "\n" not in str(refused.value) or "sample" in str(refused.value)
        assert len(str(refused.value)) < 1000

    return test
