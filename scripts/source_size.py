"""Count the lines of the source and find its largest functions and files.

    python scripts/source_size.py    # tests/test_structure.py holds the numbers

Code is every line with a token that belongs to no docstring, no comment and no import statement.
"""

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
    imports: int = 0
    docstrings: int = 0
    files: dict[str, int] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)


def measure(folder: Path = _SOURCE) -> Size:
    """Measure all Python files below a folder."""
    size = Size()
    for path in sorted(folder.rglob("*.py")):
        text, name = path.read_text(), path.relative_to(folder).as_posix()
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        documented = [node for node in nodes if isinstance(node, _DOCUMENTED)]
        imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        import_lines = {line for node in imports for line in _lines(node)}
        docstring_lines = {line for node in documented for line in _docstring_lines(node)}
        size.files[name] = len(text.splitlines())
        size.total += size.files[name]
        size.docstrings += len(docstring_lines)
        size.imports += len(import_lines)
        size.code += len(_token_lines(text) - docstring_lines - import_lines)
        for node in documented:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = len(_lines(node)) - len(_docstring_lines(node))
                size.functions[f"{name}:{node.lineno} {node.name}"] = lines
    return size


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _docstring_lines(node: ast.AST) -> range:
    if not isinstance(node, _DOCUMENTED) or ast.get_docstring(node, clean=False) is None:
        return range(0)
    return _lines(node.body[0])


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
    parts = f"{size.code} code, {size.imports} imports, {size.docstrings} docstrings"
    print(f"{len(size.files)} files, {size.total} lines: {parts}")
    for what, found in (("files", size.files), ("functions", size.functions)):
        largest = sorted(found.items(), key=lambda pair: -pair[1])[:5]
        print(f"largest {what}: " + ", ".join(f"{name} ({lines})" for name, lines in largest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
