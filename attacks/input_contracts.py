"""Pass valid and hostile inputs to every public function, constructor and method.

    python -m attacks.input_contracts                        # every hostile value for every argument
    python -m attacks.input_contracts --names Taxonomy       # of names that begin with this

The contract: valid input returns a finite result; other input returns a finite result too, or raises a
ValueError or TypeError of one sentence that labelweave or scikit-learn raises deliberately.  It must not
cause an internal error of NumPy, SciPy or Python, NaN, a crash, a wait of more than thirty seconds, or more
than 2 GiB of memory.
"""

import datetime
import opcode
import os
import resource
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from benchmarks.frame import command, flag

import labelweave as lw
from attacks.contract_table import CONTRACTS, Contract, ContractWorld
from attacks.public_names import is_of_library
from attacks.trials import allow_memory, within

_SECONDS = 30
_MOST_BYTES = 2 << 30
_LONGEST_MESSAGE = 2000
RAISE = opcode.opmap["RAISE_VARARGS"]


def universal() -> dict[str, Any]:
    """Return values that are wrong for nearly every argument, by description."""
    huge = 2**70
    return {
        "None": None,
        "text": "text",
        "empty text": "",
        "bytes": b"x",
        "an object": object(),
        "a class": int,
        "NaN": float("nan"),
        "inf": float("inf"),
        "-inf": -float("inf"),
        "-1": -1,
        "0": 0,
        "1.5": 1.5,
        "1": 1,
        "2**70": huge,
        "-2**70": -huge,
        "10**400": 10**400,
        "1e308": 1e308,
        "True": True,
        "complex": 1j,
        "empty list": [],
        "list of an empty list": [[]],
        "list of None": [None],
        "list of text": ["a"],
        "ragged lists": [[1, 2], [3]],
        "dict": {"a": 1},
        "empty dict": {},
        "empty set": set(),
        "tuple": (),
        "an iterator": iter(()),
        "a function": lambda *_: None,
        "a range": range(3),
        "a date": datetime.date(2020, 1, 1),
        "NaN list": [float("nan")] * 3,
        "huge ints": [[huge, 1], [1, huge]],
        "negative list": [-5, -7],
        "array ()": np.array(5.0),
        "array (0,)": np.empty(0),
        "array (0, 0)": np.empty((0, 0)),
        "array (0, 3)": np.empty((0, 3)),
        "array (3, 0)": np.empty((3, 0)),
        "array (1, 1)": np.ones((1, 1)),
        "array (2, 3, 4)": np.zeros((2, 3, 4)),
        "object array": np.array([[None, "a"], [1, object()]], object),
        "text array": np.array([["a", "b"]]),
        "complex array": np.ones((2, 2), complex),
        "times": np.array(["2020-01-01"], "M8[D]"),
        "records": np.zeros(2, [("a", int)]),
        "masked array": np.ma.masked_all((3, 3)),
        "empty frame": pd.DataFrame(),
        "frame of text": pd.DataFrame({"a": ["x", "y"]}),
        "sparse (0, 0)": sp.csr_array((0, 0)),
        "sparse": sp.csr_array(np.eye(3)),
        "sparse vector": sp.coo_array(np.ones(3)),
        "far": [10**9],
    }


def changed(value: Any) -> dict[str, Any]:
    """Return variants of a valid table or list that are wrong in other ways, by change."""
    if isinstance(value, (list, tuple)) and value:
        kind = type(value)
        return {
            "cut": value[:-1],
            "doubled": kind([*value, *value]),
            "None within": kind([None, *value[1:]]),
            "object within": kind([object(), *value[1:]]),
            "list within": kind([[], *value[1:]]),
            "text within": kind(["no such", *value[1:]]),
        }
    if not isinstance(value, np.ndarray) or value.size == 0:
        return {}
    found = {
        "row lost": value[:-1],
        "no rows": value[:0],
        "one row": value[:1],
        "transposed": value.T,
        "rows doubled": np.concatenate([value, value]),
        "one more axis": value[None],
        "as text": value.astype(str),
        "as objects": value.astype(object),
        "as int8": value.astype(object) if value.dtype.kind in "OU" else value.astype("i1"),
        "as a frame": pd.DataFrame(value) if value.ndim == 2 else pd.Series(value),
        "as lists": value.tolist(),
        "as an iterator": iter(value),
        "as a masked array": np.ma.masked_array(value, mask=True),
    }
    if value.ndim == 2:
        found |= {
            "column lost": value[:, :-1],
            "no columns": value[:, :0],
            "one column": value[:, :1],
            "flat": value.ravel(),
        }
    if value.dtype.kind in "fiub":
        numbers = value.astype(float)
        for name, number in (("NaN", np.nan), ("inf", np.inf), ("-7", -7.0), ("0.5", 0.5), ("1e300", 1e300)):
            with_it = numbers.copy()
            with_it.flat[0] = number
            found |= {f"{name} within": with_it, f"only {name}": np.full(value.shape, number)}
        found |= {"squared_error": numbers * 1e200, "as complex": numbers + 0j, "zeros": numbers * 0}
        if value.ndim == 2:
            found |= {
                name: sp.csr_array(numbers).asformat(name)
                for name in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
            }
            found |= {
                "sparse, column lost": sp.csr_array(numbers)[:, :-1],
                "sparse NaN": sp.csr_array(numbers * np.nan),
            }
    return found


def hostile_values(world: ContractWorld, contract: Contract, argument: str) -> dict[str, Any]:
    valid = contract.arguments[argument](world)[0]
    return universal() | {f"valid, {name}": value for name, value in changed(valid).items()}


def fault(error: Exception, shown: str) -> str | None:
    frames = list(frames_of(error.__traceback__))
    code, at = frames[-1]
    line = traceback.extract_tb(error.__traceback__)[-1].lineno
    where = f"{type(error).__name__} at {Path(code.co_filename).name}:{line}"
    if isinstance(error, OSError) and error.filename is not None:
        return None  # errors of the operating system about a path
    if not isinstance(error, (ValueError, TypeError)):
        return f"{where}: {str(error)[:150]}"
    if any(found.co_filename.endswith("sklearn/utils/validation.py") for found, _ in frames):
        return None  # which scikit-learn's own checks of estimators require
    is_ours = is_of_library(code.co_filename) or "/sklearn/" in code.co_filename
    if not is_ours or code.co_code[at] != RAISE:
        return f"came upon a {where}: {str(error)[:150]}"
    said = (str(error).replace(shown, "") if shown else str(error)).strip()
    if not said or len(said) > _LONGEST_MESSAGE or ("\n" in said and "/sklearn/" not in code.co_filename):
        return f"{where}: a message of {len(said)} characters, not one sentence: {said[:150]!r}"
    return None


def frames_of(found: TracebackType | None) -> Iterator[tuple[Any, int]]:
    while found is not None:
        yield found.tb_frame.f_code, found.tb_lasti
        found = found.tb_next


def not_finite(answer: Any) -> bool:
    if isinstance(answer, lw.LabelMatrix):
        return False  # NaN means unobserved there
    if isinstance(answer, Mapping):
        return any(map(not_finite, answer.values()))
    if isinstance(answer, (list, tuple)):
        return any(map(not_finite, answer))
    if sp.issparse(answer):
        answer = answer.data
    if isinstance(answer, (float, np.floating, np.ndarray)):
        numbers = np.asarray(answer)
        return numbers.dtype.kind in "fc" and not np.isfinite(numbers).all()
    return False


def _printed(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # a number with too many digits
        return ""


@contextmanager
def limits() -> Iterator[None]:
    """Bound the memory of this process, and work in a folder where files of hostile names do no harm."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    folder = Path.cwd()
    allow_memory(_MOST_BYTES)
    try:
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as scratch:
            warnings.simplefilter("ignore")
            os.chdir(scratch)
            yield
    finally:
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_AS, before)


def violation(
    world: ContractWorld, contract: Contract, given: dict[str, Any], hostile: str | None = None
) -> str | None:
    """Call with some arguments, one of which may be hostile; return how that breaks the contract."""
    shown = "" if hostile is None else _printed(given[hostile])
    try:
        with within(_SECONDS):
            answer = contract.call(world, **given)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        if hostile is None:
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"refused: {type(error).__name__}: {str(error)[:200]} at {last}"
        return fault(error, shown)  # type: ignore[arg-type]
    return "an answer that is not finite" if contract.finite and not_finite(answer) else None


def valid_arguments(world: ContractWorld, contract: Contract, choices: Mapping[str, int]) -> dict[str, Any]:
    found = {name: alternatives(world) for name, alternatives in contract.arguments.items()}
    return {name: values[choices.get(name, 0) % len(values)] for name, values in found.items()}


def attack(names: list[str], number: int = 0) -> Iterator[str]:
    """Try all hostile values for all arguments; return what breaks the contract."""
    with tempfile.TemporaryDirectory() as folder:
        world = ContractWorld(number, Path(folder))
        for name in names:
            contract = CONTRACTS[name]
            most = max((len(values(world)) for values in contract.arguments.values()), default=1)
            for choice in range(most):
                chosen = dict.fromkeys(contract.arguments, choice)
                found = violation(world, contract, valid_arguments(world, contract, chosen))
                if found:
                    yield f"{name}, valid {choice}: {found}"
            for argument in contract.arguments:
                for what, value in hostile_values(world, contract, argument).items():
                    given = valid_arguments(world, contract, {}) | {argument: value}
                    found = violation(world, contract, given, argument)
                    if found:
                        yield f"{name}, {argument} is {what}: {found}"


@command(names=flag("", "the beginning of names"), world=flag(0, "a number for the valid data"))
def main(chosen: Any) -> None:
    names = [name for name in CONTRACTS if name.startswith(chosen.names)]
    counts: Counter[str] = Counter()
    with limits():
        for found in attack(names, chosen.world):
            counts[found.partition(",")[0]] += 1
            print(f"  {found}", flush=True)
    print(f"{len(names)} public names, {sum(counts.values())} violations of {len(counts)}")
    raise SystemExit(bool(counts))
