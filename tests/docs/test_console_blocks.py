"""Commands on the pages: their flags exist, and the first ones of the README and of the tutorial run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from labelweave.app.cli.program import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "coming_from").glob("*.md"))
CONSOLE = re.compile(r"^```(?:console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IN_A_LINE = re.compile(r"`(labelweave [^`\n]*)`")


def commands(page):
    """List the calls of the program on a page, including those within sentences."""
    text = page.read_text(encoding="utf-8")
    blocks = [block.replace("\\\n", " ") for block in CONSOLE.findall(text)]
    shown = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    found = [line for line in shown if line.startswith("labelweave ")] + IN_A_LINE.findall(text)
    return [shlex.split(line.split("#")[0]) for line in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_flags_exist(page):
    for words in commands(page):
        name = words[1].rstrip("*")
        if name.startswith("-") or not name.islower():
            continue
        command = main.get_command(None, name)
        assert command is not None, words
        known = {flag for part in command.params for flag in (*part.opts, *part.secondary_opts)}
        given = {word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
        assert given <= known | {"--help"}, (words, given - known)


def run(line, folder):
    """Run a line as written, with this Python and the program next to it."""
    words = shlex.split(line.split("#")[0])
    if words[0] == "labelweave":
        words = [sys.executable, "-m", *words]
    elif words[0] == "python":
        words = [sys.executable, str(ROOT / words[1]), *words[2:]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, (line, done.stderr[-2000:])
    return done.stdout + done.stderr


def without_numbers(text):
    return " ".join(re.sub(r"[-+]?\d[\d.,e-]*", "0", text).split())


@pytest.mark.slow
def test_the_first_commands_of_the_readme_and_of_the_tutorial_run(tmp_path):
    first = CONSOLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0].splitlines()
    said, due = "", ""
    for line in first[1:]:  # the first one installs
        if line.startswith("$ "):
            assert without_numbers(due) in without_numbers(said)
            said, due = run(line.removeprefix("$ "), tmp_path), ""
        elif line == "...":
            assert without_numbers(due) in without_numbers(said)
            due = ""
        else:
            due += f"{line}\n"
    assert without_numbers(due) in without_numbers(said)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    (tmp_path / "others.csv").write_bytes((tmp_path / "new.csv").read_bytes())
    tutorial = CONSOLE.findall((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"))
    for line in "\n".join(tutorial).splitlines():
        run(line.removeprefix("$ "), tmp_path)
