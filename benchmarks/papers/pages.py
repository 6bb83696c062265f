"""The papers' pages: blocks of what was measured, written from the results files."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.papers.steps import STEPS

__all__ = ["PAGES", "with_blocks", "write_pages"]

PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers"
_BLOCK = re.compile(r"(<!-- measured: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def write_pages() -> list[str]:
    """Write the blocks of all pages anew.

    Returns
    -------
    list of str
        The pages that changed.
    """
    changed = []
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = with_blocks(text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            changed.append(page.name)
    return changed


def with_blocks(text: str) -> str:
    """Give a page with the blocks that the results files make.

    Parameters
    ----------
    text : str
        The page.

    Returns
    -------
    str
        The page, all text outside of blocks as it was.
    """
    return _BLOCK.sub(lambda found: f"{found[1]}{_block(found[2])}{found[3]}", text)


def _block(name: str) -> str:
    if name == "all steps":
        return _all_steps()
    step = STEPS[name]
    runs = step.runs()
    if not runs:
        return f"\nNot measured so far: `python -m {step.command}`\n\n"
    head = f"{step.serves[0].upper()}{step.serves[1:]}. `python -m {step.command}`, measured {step.origin()}:"
    lines = [line.rstrip() for line in step.table().splitlines()]
    if not lines[0].startswith("|"):
        lines = ["```text", *lines, "```"]
    return "\n".join(["", head, "", *lines, "", ""])


def _all_steps() -> str:
    """Write a row a step; minutes are those of the records where they have them."""
    lines = ["", "| step | for | minutes | measured |", "|---|---|---|---|"]
    for step in STEPS.values():
        measured = step.origin().replace("/", ", ") or "not so far"
        lines.append(f"| {step.name} | {step.serves} | {step.minutes():.0f} | {measured} |")
    total = sum(step.minutes() for step in STEPS.values())
    return "\n".join([*lines, "", f"Together about {total:,.0f} minutes.", "", ""])
