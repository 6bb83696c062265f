"""Change the mathematics in one place at a time, and check whether a test notices.

    make coverage                              # which test reaches which line, and how long it takes
    python -m attacks.mutants --mutants 500    # an hour or two on one core; resumes where it was stopped
    python -m attacks.mutants --again --seconds 60    # run the survivors again, with more of the tests
    python -m attacks.mutants --known                 # count what has run so far

The operators of cosmic-ray (``pip install --group mutants``) make the mutants: another arithmetic or
comparison operator, a sign or a negation less, ``and`` for ``or``, a number one more or one less, a loop that
does nothing, ``break`` for ``continue``, an inverted condition.  Annotations and error messages are not
changed.  A sample of all mutants of the solvers, losses, problems, inference, hyperparameters and loops is
drawn, the same for the same source.  For each mutant the fast tests that reach its line are run until one
fails, starting with those of its area.  People review the survivors and store their verdicts in
``attacks/results/mutants_seen.json``: changes of only time or rounding are called equivalent.  The outcome of
each is in ``attacks/results/mutants.jsonl``; a mutant of a line that has changed since is another mutant.
"""

import ast
import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.frame import command, flag, write_json

from attacks.mutant_runs import ROOT, Reach, Runs, in_session

SHARES = {"solvers": 0.30, "problems": 0.43, "postprocessing": 0.13, "foundation": 0.14}
_NUMBERS = 0.25  # of the mutants of a folder; half of all mutants are numbers, most of them axes
_SOURCE = ROOT / "src" / "labelweave"
_LOOPS = "foundation/loops"  # of the foundation, the computing parts
_RESULTS = Path(__file__).with_name("results")
_SEEN = _RESULTS / "mutants_seen.json"
_LOG = _RESULTS / "mutants.jsonl"
_BINARY = [
    "Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul", "BitOr_BitAnd",
    "BitAnd_BitOr", "LShift_RShift", "RShift_LShift",
]  # fmt: skip
_COMPARISONS = [
    "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt", "Eq_NotEq", "NotEq_Eq",
    "Is_IsNot", "IsNot_Is",
]  # fmt: skip
_OPERATORS = [
    *(f"ReplaceBinaryOperator_{name}" for name in _BINARY),
    *(f"ReplaceComparisonOperator_{name}" for name in _COMPARISONS),
    *(f"ReplaceUnaryOperator_Delete_{name}" for name in ("USub", "Not", "Invert")), "AddNot",
    "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop",
]  # fmt: skip


class Mutant(NamedTuple):
    """One change: its place, its operator, and its number in the file."""

    key: str
    path: str
    operator: str
    occurrence: int
    line: int

    def source(self) -> str:
        from cosmic_ray.mutating import mutate_code

        return str(mutate_code((ROOT / self.path).read_text(), _operator(self.operator), self.occurrence))

    def said(self, text: str) -> dict[str, Any]:
        """Return its record: the changed line, before and after."""
        lines = (ROOT / self.path).read_text().splitlines()
        pairs = zip(lines, text.splitlines(), strict=False)
        was, becomes = next((old, new) for old, new in pairs if old != new)
        kept = {"key": self.key, "path": self.path, "line": self.line, "operator": self.operator}
        return {**kept, "was": was.strip(), "becomes": becomes.strip()}


def _operator(name: str) -> Any:
    from cosmic_ray.operators.provider import OperatorProvider

    return OperatorProvider()[name]()


def mutants(path: Path) -> Iterator[Mutant]:
    from cosmic_ray.ast import ast_nodes, get_ast

    text = path.read_text()
    lines, tree, parsed = text.splitlines(), get_ast(text), ast.parse(text)
    left_alone, definitions = _left_alone(parsed), _definitions(parsed)
    seen: Counter[str] = Counter()
    relative = path.relative_to(ROOT).as_posix()
    for name in _OPERATORS:
        operator = _operator(name)
        places = (start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node))
        for occurrence, place in enumerate(places):
            if any(first <= place < last for first, last in left_alone):
                continue
            inside = definitions.get(place[0], "")
            stem = f"{relative}:{inside}:{name}:{lines[place[0] - 1].strip()}"
            yield Mutant(f"{stem}:{seen[stem]}", relative, name, occurrence, place[0])
            seen[stem] += 1


def _left_alone(parsed: ast.Module) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Find annotations, which nothing reads, raised errors, and code for type checkers only."""
    found: list[Any] = []
    for node in ast.walk(parsed):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.Raise) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        ):
            found.append(node)
    return [
        ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)) for node in found if node
    ]


def _definitions(parsed: ast.Module, outer: str = "") -> dict[int, str]:
    names: dict[int, str] = {}
    for node in ast.iter_child_nodes(parsed):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{outer}.{node.name}".lstrip(".")
            names |= dict.fromkeys(range(node.lineno, (node.end_lineno or 0) + 1), name)
            names |= _definitions(node, name)  # type: ignore[arg-type]
    return names


def sample(count: int, seed: int) -> list[Mutant]:
    """Draw mutants, with a share per folder; the choice depends only on the text of the lines."""
    drawn = []
    for folder, share in SHARES.items():
        paths = sorted((_SOURCE / (_LOOPS if folder == "foundation" else folder)).rglob("*.py"))
        found = [mutant for path in paths for mutant in mutants(path)]
        found.sort(key=lambda mutant: _number(seed, mutant))
        numbers = [mutant for mutant in found if mutant.operator == "NumberReplacer"]
        others = [mutant for mutant in found if mutant.operator != "NumberReplacer"]
        wanted = round(count * share)
        of_numbers = round(wanted * _NUMBERS)
        print(f"{folder}: {wanted} of {len(found)} mutants", flush=True)
        drawn += _first(numbers, of_numbers) + _first(others, wanted - of_numbers)
    return sorted(drawn, key=lambda mutant: _number(seed, mutant))


def _number(seed: int, mutant: Mutant) -> bytes:
    return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()


def _first(found: list[Mutant], count: int) -> list[Mutant]:
    """Take the first ones that change the meaning of the file."""

    def changes(mutant: Mutant) -> bool:
        texts = mutant.source(), (ROOT / mutant.path).read_text()
        return len({ast.dump(ast.parse(text)) for text in texts}) == 2

    return list(islice(filter(changes, found), count))


def outcomes(log: Path) -> dict[str, dict[str, Any]]:
    """Read the outcomes of mutants by key; the last run of each counts."""
    said = map(json.loads, log.read_text().splitlines() if log.exists() else [])
    return {entry["key"]: entry for entry in said}


def _verdicts() -> dict[str, str]:
    return json.loads(_SEEN.read_text()) if _SEEN.exists() else {}


def run(drawn: list[Mutant], log: Path, seconds: float, *, again: bool) -> dict[str, dict[str, Any]]:
    """Run what is not in the log yet; if asked, also survivors that are not known to be equivalent."""
    done, seen = outcomes(log), _verdicts()
    survivors = {key for key, entry in done.items() if entry["outcome"] == "survived"} - seen.keys()
    left = {one.key: again and one.key in survivors for one in drawn}
    open_ = [one for one in drawn if one.key not in done or left[one.key]]
    if open_:
        reach = Reach()
        chosen = {one.key: reach.tests(one.path, one.line) for one in open_}
        files = {test.split("::")[0] for tests in chosen.values() for test in tests}
        open_.sort(key=lambda one: "/foundation/loops/" in one.path)

        def work(items: dict[str, Any]) -> None:
            runs = Runs(items, reach.seconds, seconds)
            with log.open("a") as lines:
                for number, mutant in enumerate(open_):
                    begin, text = time.monotonic(), mutant.source()
                    outcome, by = runs.outcome(mutant.path, text, chosen[mutant.key])
                    spent = round(time.monotonic() - begin, 1)
                    entry = {**mutant.said(text), "outcome": outcome, "by": by, "seconds": spent}
                    done[mutant.key] = entry
                    lines.write(json.dumps(entry) + "\n")
                    lines.flush()
                    print(f"{number + 1}/{len(open_)} {' | '.join(map(str, entry.values()))}", flush=True)

        in_session(sorted(files), work)
    return {mutant.key: done[mutant.key] for mutant in drawn}


def summary(entries: dict[str, dict[str, Any]], drawn: int, seed: int) -> dict[str, Any]:
    """Count the outcomes of the mutants, and list the survivors with their reviews."""
    seen = _verdicts()
    by_folder: dict[str, Counter[str]] = {folder: Counter() for folder in SHARES}
    survivors = []
    for key, entry in entries.items():
        killed = entry["outcome"] != "survived"
        verdict = "killed" if killed else "equivalent" if key in seen else "survived"
        by_folder[Path(entry["path"]).parts[2]][verdict] += 1
        if not killed:
            said = {name: entry[name] for name in ("path", "line", "was", "becomes")}
            survivors.append({**said, "reason": seen.get(key, "")})
    total: Counter[str] = sum(by_folder.values(), Counter())
    return {
        "seed": seed, "drawn": drawn, "mutants": len(entries), **total,
        "folders": {folder: dict(counts) for folder, counts in by_folder.items()},
        "survivors": survivors,
    }  # fmt: skip


@command(
    mutants=500,
    seed=0,
    log=flag(_LOG, "where outcomes are kept"),
    again=flag(False, "run only what has survived, once more"),
    known=flag(False, "run nothing"),
    seconds=flag(8.0, "of tests for a mutant, by their usual times"),
)
def main(chosen: Any) -> None:
    drawn = sample(chosen.mutants, chosen.seed)
    if chosen.again or chosen.known:
        known = outcomes(chosen.log)
        drawn = [mutant for mutant in drawn if mutant.key in known]
    again = chosen.again and not chosen.known
    found = summary(run(drawn, chosen.log, chosen.seconds, again=again), chosen.mutants, chosen.seed)
    write_json(_RESULTS / "mutants.json", found)
    counted = found["mutants"] - found.get("equivalent", 0)
    print(
        f"{found['killed']} of {found['mutants']} mutants killed; {found.get('equivalent', 0)} of the others "
        f"equivalent, which leaves {found['killed'] / counted:.1%}"
    )
