"""The papers' pages: blocks of measurements, written from the results files, and counts of verdicts."""

import re
from pathlib import Path
from typing import NamedTuple

from benchmarks.papers.steps import STEPS

PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers"
_BLOCK = re.compile(r"(<!-- measured: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
_OF_SPLIT = re.compile(r" +\d+ +\d+ ")
VERDICTS = ("same", "better", "not reproduced", "no data")


class Item(NamedTuple):
    """A row of a page's table of all tables and figures."""

    name: str
    verdict: str
    paper: str
    here: str
    command: str


def items(text: str) -> list[Item]:
    _, _, rest = text.partition("| item | verdict |")
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    return [Item(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def write_pages() -> list[str]:
    changed = []
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = with_blocks(text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            changed.append(page.name)
    return changed


def with_blocks(text: str) -> str:
    return _BLOCK.sub(lambda found: f"{found[1]}{_block(found[2])}{found[3]}", text)


def _block(name: str) -> str:
    if name in _SUMMARIES:
        return "\n".join(["", *_SUMMARIES[name](), "", ""])
    step = STEPS[name]
    runs = step.runs()
    if not runs:
        return f"\nNot measured so far: `python -m {step.command}`\n\n"
    head = f"{step.serves[0].upper()}{step.serves[1:]}. `python -m {step.command}`, measured {step.origin()}:"
    lines = [line.rstrip() for line in step.table().splitlines()]
    if any(re.match(r" +\d+ +mean ", line) for line in lines):  # the records have the individual splits
        lines = [line for line in lines if not _OF_SPLIT.match(line)]
    if not lines[0].startswith("|"):
        lines = ["```text", *lines, "```"]
    return "\n".join(["", head, "", *lines, "", ""])


def _all_steps() -> list[str]:
    """Write one row per step, with minutes and commits of the records where available."""
    lines = ["| step | for | minutes | measured at |", "|---|---|---|---|"]
    lines += [
        f"| {step.name} | {step.serves} | {step.minutes():.0f} | {', '.join(step.commits())} |"
        for step in STEPS.values()
    ]
    total = sum(step.minutes() for step in STEPS.values())
    return [*lines, "", f"Together about {total:,.0f} minutes, so that not all are of one commit."]


def _papers() -> list[tuple[str, list[Item]]]:
    """Return the titles of the papers' pages as links, with their items, by year."""
    pages = sorted(PAGES.glob("*_20*.md"), key=lambda page: page.stem[-4:])
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages}
    return [
        (f"[{text.partition(chr(10))[0].removeprefix('# ')}]({name})", items(text))
        for name, text in texts.items()
    ]


def _counts() -> list[str]:
    lines = [f"| paper | {' | '.join(VERDICTS)} | of the not reproduced, not run |", "|---" * 6 + "|"]
    for paper, rows in _papers():
        counts = [sum(row.verdict == verdict for row in rows) for verdict in VERDICTS]
        idle = sum(row.here.startswith("not run") for row in rows if row.verdict == "not reproduced")
        lines.append(f"| {paper} | {' | '.join(map(str, [*counts, idle]))} |")
    return lines


_SUMMARIES = {"all steps": _all_steps, "counts of verdicts": _counts}
