"""Find the tests that reach a line, and run them on a changed file.

Every run is a fork of one process that has imported the library.  Functions get their changed code; if more
than functions changes, the library is imported again with the changed file instead of the one on disk.
Compiled loops that a change reaches are compiled again, and not cached.
"""

import ast
import contextlib
import gc
import importlib
import inspect
import os
import pkgutil
import resource
import select
import signal
import sys
import time
import traceback
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = ROOT / "src" / "labelweave"
_MEMORY = 4 << 30
_OURS = 70  # exit status of a run that could not start
_COMPILING = 90.0  # seconds more for changed loops
_WAITING = 6.0  # wall-clock seconds per second of computing


def module_name(path: str) -> str:
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class _Use(NamedTuple):
    """A name of a module in a line, perhaps with the module's own definition."""

    path: str
    name: tuple[str, str]  # its module, and the name there
    line: int
    within: str


class Reach:
    """The tests that reach lines, as measured by coverage.py."""

    def __init__(self) -> None:
        from coverage import CoverageData

        data = CoverageData(str(ROOT / ".coverage"))
        data.read()
        self._data = data
        self.seconds = dict(_test_times(ROOT / ".coverage-times.xml"))
        self._uses: dict[tuple[str, str], list[_Use]] = defaultdict(list)
        for path in sorted(_PACKAGE.rglob("*.py")):
            for use in _uses(path):
                self._uses[use.name].append(use)

    @cache  # noqa: B019 - one object a process
    def _lines(self, path: str) -> dict[int, set[str]]:
        reached = self._data.contexts_by_lineno(path)
        return {
            line: {one.rsplit("|", 1)[0] for one in contexts if one} for line, contexts in reached.items()
        }

    def tests(self, path: str, line: int) -> list[str]:
        """List tests that run a line: those that import its module first, then those of its area, fast ones
        first.

        Lines that run at import, and those of compiled loops, are reached by the tests of what uses the
        definition.
        """
        parsed = ast.parse((ROOT / path).read_text())
        lines, within = _statement(parsed, line)
        found = set() if within.isupper() else self._tests_at(path, lines)
        if not found:
            names = {part.split(".")[0] for part in within.strip("()").split(", ")}
            found = set().union(*(self._tests_of_users((module_name(path), name), set()) for name in names))
            found |= {test for test in self.seconds if _imports(test.split("::")[0], module_name(path))}
        area = "tests/" + Path(path).parts[2].strip("_") + "/"
        known = [test for test in found if test in self.seconds and test.startswith("tests/")]

        def place(test: str) -> tuple[bool, bool, float, str]:
            is_direct = _imports(test.split("::", maxsplit=1)[0], module_name(path))
            return not is_direct, not test.startswith(area), self.seconds[test], test

        return sorted(known, key=place)

    def _tests_at(self, path: str, lines: Iterable[int]) -> set[str]:
        return {test for line in lines for test in self._lines(path).get(line, ())}

    def _tests_of_users(self, name: tuple[str, str], past: set[tuple[str, str]]) -> set[str]:
        past.add(name)
        found: set[str] = set()
        for use in self._uses[name]:
            tests = self._tests_at(use.path, [use.line])
            user = (module_name(use.path), use.within)
            if not tests and use.within and user not in past:
                tests = self._tests_of_users(user, past)
            found |= tests
        return found


@cache
def _imports(test_file: str, module: str) -> bool:
    place = ROOT / test_file
    return place.exists() and f"from {module} import" in place.read_text()


def _test_times(path: Path) -> Iterator[tuple[str, float]]:
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is None and case.find("error") is None and case.find("skipped") is None:
            where = case.get("classname", "").replace(".", "/") + ".py"
            yield f"{where}::{case.get('name')}", float(case.get("time", "0"))


def _statement(parsed: ast.Module, line: int) -> tuple[range, str]:
    """Find the lines of the innermost statement, and the enclosing definition or the name it assigns."""
    best, within = range(line, line + 1), ""
    body: list[Any] = list(parsed.body)
    while body:
        node = body.pop(0)
        if not node.lineno <= line <= (node.end_lineno or 0):
            continue
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            within = f"{within}.{node.name}".lstrip(".")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not within:
            within = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        inner = [
            child for name in ("body", "orelse", "handlers", "finalbody") for child in getattr(node, name, [])
        ]
        last = min([child.lineno - 1 for child in inner], default=node.end_lineno or 0)
        best = range(node.lineno, max(last, node.lineno) + 1)
        body = inner if line > last or not inner else []
    return best, within


def _uses(path: Path) -> Iterator[_Use]:
    """List where the module's own names, and those it imports from this library, are used."""
    parsed, relative = ast.parse(path.read_text()), path.relative_to(ROOT).as_posix()
    here = module_name(relative)
    names = {}
    for node in ast.walk(parsed):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("labelweave"):
            names |= {part.asname or part.name: (str(node.module), part.name) for part in node.names}
    for node in parsed.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = (here, node.name)
        elif isinstance(node, ast.Assign):
            names |= {
                part.id: (here, part.id)
                for target in node.targets
                for part in ast.walk(target)
                if isinstance(part, ast.Name)
            }
    for node in parsed.body:
        assigned = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
        within = node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else assigned
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in names:
                yield _Use(relative, names[part.id], part.lineno, within)


class _ChangedFile(SourceFileLoader):
    """Find one module, and read it from changed text."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> Any:
        return compile(self._text, self.path, "exec", dont_inherit=True)


def _loops_that_need(name: str) -> set[str]:
    """List the modules of loops whose compiled code includes code of a module."""
    needs = {}
    for path in (_PACKAGE / "foundation" / "loops").rglob("*.py"):
        imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        needs[module_name(path.relative_to(ROOT).as_posix())] = {str(node.module) for node in imports}
    found = {name}
    while True:
        more = {user for user, needed in needs.items() if needed & found} - found
        if not more:
            return found
        found |= more


def _compile_anew(modules: set[str]) -> None:
    import numba

    original = numba.njit

    def njit(*functions: Any, **options: Any) -> Any:
        if functions:
            return original(*functions, **options)
        return lambda f: original(**options | ({"cache": False} if f.__module__ in modules else {}))(f)

    numba.njit = njit


class _Report:
    """Report to the parent which test failed, as a plugin of pytest."""

    def __init__(self, write_end: int) -> None:
        self._end = write_end

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            os.write(self._end, report.nodeid.encode() + b"\n")
            os._exit(1)


class _Session:
    """Return the tests that pytest has collected instead of running them."""

    def __init__(self, work: Callable[[dict[str, Any]], None]) -> None:
        self._work = work

    def pytest_runtestloop(self, session: Any) -> bool:
        self._work({item.nodeid: item for item in session.items})
        return True


def in_session(files: Iterable[str], work: Callable[[dict[str, Any]], None]) -> None:
    """Import the library and some test files, and process the tests, none of which has run."""
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = "/tmp/hypothesis-of-mutants"
    for found in pkgutil.walk_packages([str(_PACKAGE)], "labelweave."):
        importlib.import_module(found.name)
    _pytest(["-s", *files], _Session(work))


def _pytest(arguments: list[str], plugin: Any) -> int:
    import pytest

    options = [f"-pno:{name}" for name in ("cacheprovider", "xdist", "pytest_cov")]
    options += ["-q", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *arguments], plugins=[plugin]))


class Runs:
    """Runs of tests in forks of this process."""

    def __init__(self, items: dict[str, Any], times: dict[str, float], seconds: float) -> None:
        self._items, self._times, self._seconds, self._sound = items, times, seconds, dict[str, bool]()

    def outcome(self, path: str, text: str, tests: list[str]) -> tuple[str, str]:
        """Return whether a changed file is noticed ("killed" or "survived"), and by which test."""
        tests = [test for test in tests if test in self._items]
        while some := self._first([test for test in tests if self._sound.get(test, True)]):
            limit = (
                10.0
                + 2 * sum(map(self._times.__getitem__, some))
                + _COMPILING * ("/foundation/loops/" in path)
            )
            failed, end = self._run((path, text), some, limit)
            if not failed and not end:
                return "survived", f"{len(some)} of {len(tests)} tests"
            if not failed or self._passes(failed):
                return "killed", failed or end
        return "survived", "no test"

    def _first(self, tests: list[str]) -> list[str]:
        """Take as many tests as the time allows, at least the first."""
        some: list[str] = []
        left = self._seconds
        for test in tests:
            if not some or self._times[test] <= left:
                some.append(test)
                left -= self._times[test]
        return some

    def _passes(self, test: str) -> bool:
        """Return whether a test passes on the unchanged source; determined once."""
        if test not in self._sound:
            self._sound[test] = self._run(None, [test], 600.0) == ("", "")
            if not self._sound[test]:
                print(f"left out, since it fails on the source as it is: {test}", flush=True)
        return self._sound[test]

    def _run(self, changed: tuple[str, str] | None, tests: list[str], limit: float) -> tuple[str, str]:
        """Run tests in a fork; return the first that failed, and how it ended if not by a failed test."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            self._in_fork(changed, tests, write_end, int(limit))
        os.close(write_end)
        said, end = b"", time.monotonic() + _WAITING * limit
        while (left := end - time.monotonic()) > 0 and select.select([read_end], [], [], left)[0]:
            part = os.read(read_end, 1 << 16)
            if not part:
                break
            said += part
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL) if time.monotonic() >= end else None
        os.close(read_end)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == _OURS:
            raise RuntimeError(said.decode())
        ended = f"signal {-code}" if code < 0 else f"exit {code}" if code else ""
        return said.decode().split("\n")[0], ended

    def _in_fork(self, changed: tuple[str, str] | None, tests: list[str], write_end: int, limit: int) -> None:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            os.chdir(ROOT)
            report = _Report(write_end)
            if changed is not None and not _changed_in_place(*changed):
                _import_anew(*changed)
                os._exit(_pytest(["-x", *tests], report))
            items = [self._items[test] for test in tests]
            items[0].config.pluginmanager.register(report)
            for item, following in zip(items, [*items[1:], None], strict=True):
                with _told_of_interrupts(item.nodeid, write_end):
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            os._exit(0)
        except BaseException:
            os.write(write_end, traceback.format_exc().encode())
            os._exit(_OURS)


@contextlib.contextmanager
def _told_of_interrupts(test: str, write_end: int) -> Iterator[None]:
    """Treat an interrupt, which a changed fit may raise and pytest lets through, as a failed test."""
    try:
        yield
    except KeyboardInterrupt:
        os.write(write_end, test.encode() + b"\n")
        os._exit(1)


def _changed_in_place(path: str, text: str) -> bool:
    """Replace the code of functions, if the change needs no more."""
    place = str(ROOT / path)
    if "/foundation/loops/" in path:
        return False
    sources = (ROOT / path).read_text(), text
    before, after = (dict(_codes(compile(source, place, "exec"))) for source in sources)
    if before.keys() != after.keys() or before[_TOP] != after[_TOP]:
        return False
    changed = {key: code for key, code in after.items() if code != before[key]}
    functions = [found for found in gc.get_objects() if isinstance(found, FunctionType)]
    for function in functions:
        code = function.__code__
        key = code.co_qualname, code.co_firstlineno
        if code.co_filename == place and key in changed:
            function.__code__ = changed.pop(key)
    return not changed


_TOP = ("<module>", 1)


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """List the code of a module and of its functions, without that created while functions run."""
    body = code.replace(co_consts=tuple(part for part in code.co_consts if not isinstance(part, CodeType)))
    is_outside = code.co_qualname == "<module>" or not code.co_flags & inspect.CO_NEWLOCALS
    yield (code.co_qualname, code.co_firstlineno), body if is_outside else code
    for part in code.co_consts:
        if isinstance(part, CodeType) and is_outside:
            yield from _codes(part)


def _import_anew(path: str, text: str) -> None:
    """Unload this library, so that the next import reads the changed text."""
    name, tests = module_name(path), str(ROOT / "tests")
    for loaded, module in list(sys.modules.items()):
        if loaded.split(".")[0] == "labelweave" or str(getattr(module, "__file__", "")).startswith(tests):
            del sys.modules[loaded]
    sys.meta_path.insert(0, _ChangedFile(name, str(ROOT / path), text))
    if ".foundation.loops" in name:
        _compile_anew(_loops_that_need(name))
