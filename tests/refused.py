"""Calls that are refused, listed in files beside the tests that run them.

After ">>> " a list defines names; after "$" stands a call whose "{}" is filled in by the lines below it, each
with its message, which is after the kind of error where that is not a ValueError; " ... " skips words.
"""

import re
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
    call = "{}"
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("$"):
            call = line[2:] or "{}"
        elif " -> " in line and not line.startswith((">>> ", "# ")):
            own, _, said = line.rpartition(" -> ")
            yield pytest.param(path, call.replace("{}", own), said, id=call.replace("{}", own))


def refusals(file, *, name="refused.txt"):
    """Return the calls that a list beside a file of tests has, as cases of a test that calls ``refuse``."""
    return pytest.mark.parametrize(("path", "call", "said"), [*_cases(Path(file).parent / name)])


def refuse(path, call, said):
    """Check that a call is refused in one sentence."""
    kind, words = re.fullmatch(r"(?:(\w+Error): )?(.*)", said).groups()
    parts = ".*".join(map(re.escape, words.split(" ... ")))
    with pytest.raises(Exception, match=f"(?s){parts}") as refused:
        eval(call, dict(_names(path)))
    assert (kind or "ValueError") in {one.__name__ for one in refused.type.__mro__}
    assert "\n" not in str(refused.value) or "sample" in str(refused.value)
