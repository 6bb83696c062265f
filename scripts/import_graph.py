"""Find which module of labelweave imports which, at import and when functions run.

    python scripts/import_graph.py    # the import cycles; there must be none

Imports for type checkers do not count, nor do imports of ``labelweave`` itself, which is imported before its
modules.  ``import_module`` counts: in a module that calls it, each text that is a module's name, or that
starts names in an f-string.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "labelweave"


def import_graph(source: Path = SOURCE, *, functions: bool = True) -> dict[str, set[str]]:
    """Return the modules that each module imports; without ``functions`` only at its own import."""
    trees = _trees(source)
    return {
        name: {
            target for target in _targets(tree, trees.keys(), functions) if target not in (name, source.name)
        }
        for name, tree in trees.items()
    }


@cache
def _trees(source: Path) -> dict[str, ast.Module]:
    return {_name(path, source): ast.parse(path.read_text()) for path in sorted(source.rglob("*.py"))}


def _name(path: Path, source: Path) -> str:
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _targets(tree: ast.Module, modules: set[str], functions: bool) -> Iterator[str]:
    nodes = list(_executed(tree, functions))
    by_name = functions and any(_name_of(node) == "import_module" for node in nodes)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"Line {node.lineno} has a relative import; name the module in full.")
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from full & modules
            if full - modules and node.module in modules:
                yield node.module
        elif by_name and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _named(node.value, modules)


def _named(text: str, modules: set[str]) -> Iterator[str]:
    if text in modules:
        yield text
    elif text.startswith("labelweave.") and text.endswith("."):
        yield from (name for name in modules if name.startswith(text) and "." not in name[len(text) :])


def _name_of(node: ast.AST) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def _executed(node: ast.AST, functions: bool) -> Iterator[ast.AST]:
    """Walk the executed nodes; code under ``if TYPE_CHECKING`` is not executed."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr_context | ast.operator | ast.arguments):
            continue
        if not functions and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and _name_of(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _executed(child, functions)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Find the groups of modules that import each other: strongly connected components (Tarjan 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in number:
                visit(target)
            if target in stack:
                lowest[name] = min(lowest[name], lowest[target])
        if lowest[name] == number[name]:
            place = stack.index(name)
            group = stack[place:]
            del stack[place:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in number:
            visit(name)
    return found


def main() -> int:
    """Print the cycles, at import and at run time."""
    for functions in (False, True):
        found = cycles(import_graph(functions=functions))
        print("with imports inside functions:" if functions else "at import:", len(found), "cycles")
        for group in found:
            print("  " + ", ".join(group))
    return 0


if __name__ == "__main__":
    sys.exit(main())
