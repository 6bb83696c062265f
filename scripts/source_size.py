"""Count the lines of the source (all, code, docstrings) and find its largest functions and files."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[1] / "src" / "labelweave"
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass
class Size:
    """Lines of a tree of Python files."""

    total: int = 0
    code: int = 0
    docstrings: int = 0
    files: dict[str, int] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)


def measure(folder: Path = _SOURCE) -> Size:
    """Measure all Python files below a folder."""
    size = Size()
    for path in sorted(folder.rglob("*.py")):
        text, name = path.read_text(), path.relative_to(folder).as_posix()
        tree = ast.parse(text)
        documented = [node for node in ast.walk(tree) if isinstance(node, _DOCUMENTED)]
        docstring_lines = {line for node in documented for line in _docstring_lines(node)}
        size.files[name] = len(text.splitlines())
        size.total += size.files[name]
        size.docstrings += len(docstring_lines)
        size.code += len(_token_lines(text) - docstring_lines)
        for node in documented:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
                size.functions[f"{name}:{node.lineno} {node.name}"] = len(lines - set(_docstring_lines(node)))
    return size


def _docstring_lines(node: ast.AST) -> range:
    if not isinstance(node, _DOCUMENTED) or ast.get_docstring(node, clean=False) is None:
        return range(0)
    text = node.body[0]
    return range(text.lineno, (text.end_lineno or text.lineno) + 1)


def _token_lines(text: str) -> set[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        line
        for token in tokens
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }


def main() -> int:
    """Print the figures."""
    size = measure(Path(sys.argv[1]) if len(sys.argv) > 1 else _SOURCE)
    print(f"{len(size.files)} files, {size.total} lines, {size.code} code, {size.docstrings} docstrings")
    for what, found in (("files", size.files), ("functions", size.functions)):
        largest = sorted(found.items(), key=lambda pair: -pair[1])[:5]
        print(f"largest {what}: " + ", ".join(f"{name} ({lines})" for name, lines in largest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
