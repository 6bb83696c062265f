"""How ``make docs`` builds the site: these pages, a reference from docstrings, examples that are run."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes

import labelweave

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
    "labelweave.solvers": ["Solver", "SolverResult", "State", "Status", "TraceRecord"],
}


def _write_reference() -> None:
    """Write a page a public module, of the names that it exports."""
    folder = Path(__file__).parent / "api"
    folder.mkdir(exist_ok=True)
    top = [name for name in labelweave.__all__ if callable(getattr(labelweave, name))]
    names = {"labelweave": top}
    for name in set(labelweave.__all__).difference(top, ["__version__"]):
        part = getattr(labelweave, name)
        own = [one for one in part.__all__ if getattr(part, one) is not getattr(labelweave, one, None)]
        names[f"labelweave.{name}"] = own
    pages = []
    for module, exported in sorted({**names, **FOR_EXTENSIONS}.items()):
        title = f"``{module}``"
        lines = [title, "=" * len(title), "", f".. currentmodule:: {module}", ""]
        lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in exported]
        (folder / f"{module}.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")
        pages.append(f"   {module}")
    head = ["Reference", "=========", "", ".. toctree::", "   :maxdepth: 1", "", *pages]
    (folder / "index.rst").write_text("\n".join(head) + "\n", encoding="utf-8")


def _in_site(app: Any, name: str, content: list[str]) -> None:
    """Point links between the files at the root, which pages include, to those pages."""
    for file in ("SECURITY", "CONTRIBUTING", "CODE_OF_CONDUCT", "CHANGELOG"):
        content[0] = re.sub(rf"\]\((\.\./)?{file}\.md", f"]({file.lower()}.md", content[0])


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
    app.connect("source-read", _in_site)
    app.connect("include-read", lambda app, path, name, content: _in_site(app, name, content))
