"""How ``make docs`` builds the site: these pages, a reference from docstrings, examples that are run."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

import click
import latex2mathml.converter
from docutils import nodes

import labelweave
from labelweave.app.cli.program import main as program

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import tutorial_notebook  # noqa: E402

project = "labelweave"
author = copyright = "The labelweave developers"
version = release = labelweave.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "notebooks", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"labelweave {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_math_renderer = "mathml"  # which browsers draw by themselves, so that no network is needed
smartquotes = False  # which make other signs of the two dashes of flags

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc has the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": os.sep,  # all of them run
    "ignore_pattern": r"pictures\.py",  # many minutes; its pictures are in the pages
    "within_subsection_order": "FileNameSortKey",
    "min_reported_time": 1e9,
    "remove_config_comments": True,  # of thumbnails
    "show_memory": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
}


FOR_EXTENSIONS = {  # what classes of one's own need beyond the public modules
    "labelweave.model_files": ["ModelFileError", "Storable", "storable", "load_object", "save_object"],
    "labelweave.solvers": ["Round", "Solver", "SolverResult", "State", "Status", "TraceRecord"],
}


def _write_reference() -> None:
    """Write a page a public module, of the names that it exports."""
    folder = Path(__file__).parent / "api"
    folder.mkdir(exist_ok=True)
    names = {"labelweave": [name for name in labelweave.__all__ if callable(getattr(labelweave, name))]}
    for name in set(labelweave.__all__).difference(names["labelweave"], ["__version__"]):
        names[f"labelweave.{name}"] = getattr(labelweave, name).__all__
    pages = []
    for module, exported in sorted({**names, **FOR_EXTENSIONS}.items()):
        (folder / f"{module}.rst").write_text(_module_page(module, exported), encoding="utf-8")
        pages.append((module, _first_line(module)))
    head = ["Reference", "=========", "", *(f"- :doc:`{module}`: {line}" for module, line in pages), ""]
    tree = [".. toctree::", "   :hidden:", "   :maxdepth: 1", "", *(f"   {module}" for module, _ in pages)]
    (folder / "index.rst").write_text("\n".join(head + tree) + "\n", encoding="utf-8")


def _first_line(module: str) -> str:
    return inspect.getdoc(importlib.import_module(module)).splitlines()[0]


def _module_page(module: str, exported: list[str]) -> str:
    """Write a page with all names; those that labelweave exports too have theirs there."""
    part = importlib.import_module(module)
    also = [name for name in exported if getattr(part, name) is getattr(labelweave, name, None)]
    if module == "labelweave":
        also = []
    title = f"``{module}``"
    lines = [title, "=" * len(title), "", _first_line(module), "", f".. currentmodule:: {module}", ""]
    table = [".. autosummary::", "   :nosignatures:"]
    own = [f"   {name}" for name in exported if name not in also]
    if own:
        lines += [*table, "   :toctree: generated", "", *own, ""]
    if also:
        lines += ["In ``labelweave`` itself too:", "", *table, ""]
        lines += [f"   ~labelweave.{name}" for name in also]
    return "\n".join(lines) + "\n"


def _examples(app: Any, context: Any, lines: list[str]) -> None:
    """Make code of the examples in a command's help, whose line ends a line block would drop."""
    if "| Examples:" not in lines:
        return
    start = lines.index("| Examples:")
    code = [f"    {line.removeprefix('|   ')}" for line in lines[start + 1 :]]
    lines[start:] = [".. rubric:: Examples", "", ".. code-block:: shell", "", *code, ""]


def _list_commands(app: Any, name: str, content: list[str]) -> None:
    """Write the commands with links in place of the mark on their page."""
    context = click.Context(program)
    found = {one: program.get_command(context, one) for one in sorted(program.list_commands(context))}
    lines = [f"- `{one} <#labelweave-{one}>`__: {found[one].get_short_help_str(120)}" for one in found]
    content[0] = content[0].replace("<!-- commands -->", "\n".join(["```{eval-rst}", *lines, "```"]))


def _in_site(app: Any, name: str, content: list[str]) -> None:
    """Point links between the files at the root, which pages include, to those pages."""
    for file in ("SECURITY", "CONTRIBUTING", "CODE_OF_CONDUCT", "CHANGELOG"):
        content[0] = re.sub(rf"\]\((\.\./)?{file}\.md", f"]({file.lower()}.md", content[0])


def _in_page(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let links to pictures show them, pictures link to themselves, and tables break within names."""
    body = context.get("body", "")
    body = re.sub(r' download=""(?= href="[^"]*\.png")', "", body)
    if not page.startswith("gallery/"):
        body = re.sub(r'<img [^>]*src="([^"]*\.png)"[^>]*>', r'<a href="\1">\g<0></a>', body)
    body = body.replace('<span class="pre">--', '<span class="pre flag">--')
    context["body"] = re.sub(r"<t[hd]\b.*?</t[hd]>", _with_breaks, body, flags=re.DOTALL)


def _with_breaks(cell: re.Match[str]) -> str:
    between = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z]\.)(?=[a-z])")
    return re.sub(r'(?<="pre">)[^<]*', lambda code: between.sub("<wbr>", code[0]), cell[0])


def _formula(self: Any, node: Any) -> None:
    self.body.append(latex2mathml.converter.convert(node.astext()))
    raise nodes.SkipNode


def _formula_block(self: Any, node: Any) -> None:
    drawn = latex2mathml.converter.convert(node.astext(), display="block")
    self.body.append(f'<div class="formula">{drawn}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Write what is made of the code."""
    app.add_html_math_renderer("mathml", (_formula, None), (_formula_block, None))
    _write_reference()
    tutorial_notebook.main(str(Path(__file__).parent / "notebooks" / "tutorial.ipynb"))
    app.connect("sphinx-click-process-description", _examples)
    app.connect("html-page-context", _in_page)
    app.connect("source-read", _in_site)
    app.connect("source-read", _list_commands)
    app.connect("include-read", lambda app, path, name, content: _in_site(app, name, content))
