"""The papers' pages: one of four words a row, commands that exist, and the figures of the records."""

import importlib.util
import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean, pstdev

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "papers").glob("*_20*.md"))
RECORDS = ROOT / "benchmarks" / "results" / "papers"
WORDS = {"same", "better", "not reproduced", "no data"}


def record(name):
    if not RECORDS.is_dir():
        pytest.skip("an sdist has no records")
    return json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))


def items(text):
    """Give the rows of the table of all tables and figures."""
    lines = text.split("| item | word |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_paper_has_a_page():
    assert len(PAGES) == 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_row_has_one_of_four_words(page):
    rows = items(page.read_text(encoding="utf-8"))
    assert len(rows) >= 10
    for row in rows:
        assert len(row) == 5, row
        assert row[1] in WORDS, row
        assert row[3] or row[1] in ("no data", "same"), row


def test_the_counts_of_words_are_those_of_the_pages():
    counts = (ROOT / "docs" / "papers" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        (row,) = re.findall(rf"^\| \[.*\]\({page.stem}\.md\) \| (.*) \|$", counts, re.MULTILINE)
        rows = items(page.read_text(encoding="utf-8"))
        same, better, short, idle, missing = (int(number) for number in row.split(" | "))
        words = [cells[1] for cells in rows]
        assert [same, better, short, missing] == [
            words.count(word) for word in ("same", "better", "not reproduced", "no data")
        ]
        short = [cells[3] for cells in rows if cells[1] == "not reproduced"]
        assert idle == sum(here.lstrip("[").startswith("not run") for here in short)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_exist(page):
    modules = set(re.findall(r"python -m (benchmarks[\w.]*)", page.read_text(encoding="utf-8")))
    assert modules
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []


def low_rank(method, rank, observed, measure="P@3"):
    runs = record("low_rank_tables")["runs"]
    (found,) = (
        run
        for run in runs
        if (run["set"], run["method"], run["rank"], run["observed"]) == ("bibtex", method, rank, observed)
    )
    return found[measure]


def shares(method, rank):
    return [f"{100 * low_rank(method, rank, seen):.1f}" for seen in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)]


def test_leml_stands_as_it_was_measured():
    text = (ROOT / "docs" / "papers" / "leml_2014.md").read_text(encoding="utf-8").replace("**", "")
    assert f"trace norm | {' | '.join(shares('squared', 0.4))} |" in text
    assert f"ridge penalty | {' | '.join(shares('squared, ridge', 0.4))} |" in text
    assert f"binary relevance | {' | '.join(shares('binary relevance', None))} |" in text
    for loss in ("logistic", "squared_hinge", "wsabie"):
        assert ", ".join(f"{100 * low_rank(loss, rank, 1.0):.2f}" for rank in (0.2, 0.4, 0.6)) in text
        assert ", ".join(f"{low_rank(loss, rank, 1.0, 'AUC'):.3f}" for rank in (0.2, 0.4, 0.6)) in text
    ranks = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert ", ".join(f"{100 * low_rank('squared', rank, 0.2):.1f}" for rank in ranks) in text


def test_where_low_rank_wins_stands_as_it_was_measured():
    text = (ROOT / "docs" / "papers" / "leml_2014.md").read_text(encoding="utf-8").replace("**", "")
    found = defaultdict(list)
    for run in record("isotropic_features")["runs"]:
        found[run["labels"], run["rows"], run["penalty"]].append(run["excess"])
    for labels in (10, 40, 160, 640):
        cells = [found[labels, rows, how] for rows in (2000, 8000) for how in ("trace_norm", "ridge")]
        assert (
            f"| {labels} | {' | '.join(f'{mean(cell):.3f} ± {pstdev(cell):.3f}' for cell in cells)} |" in text
        )


def test_seeger_stands_as_it_was_measured():
    text = (ROOT / "docs" / "papers" / "seeger_2008.md").read_text(encoding="utf-8").replace("**", "")
    for name, of in (("satimage", ("class", "scale", "shared", "one against rest")), ("usps", None)):
        runs = record(name)["runs"]
        for method in of or {run["method"] for run in runs}:
            errors = [run["error"] for run in runs if run["method"] == method]
            assert f"{mean(errors):.2f}" in text, method


def test_graphs_stand_as_they_were_measured():
    text = (ROOT / "docs" / "papers" / "cgm_2015.md").read_text(encoding="utf-8")
    runs = record("label_graphs")["runs"]
    for method, measures in {
        "learned": ("hamming", "macro_f1", "micro_f1"),
        "learned, ridge": ("hamming", "macro_f1", "micro_f1"),
        "Chow-Liu": ("hamming", "macro_f1", "micro_f1"),
        "none": ("hamming", "macro_f1", "micro_f1"),
        "learned, proximal": ("hamming", "macro_f1", "micro_f1"),
    }.items():
        rows = [run for run in runs if (run["set"], run["method"]) == ("scene", method)]
        assert ", ".join(f"{mean(row[name] for row in rows):.3f}" for name in measures) in text, method
        assert f"{mean(row['recall'] for row in rows):.3f}" in text or method == "none"
    toy = record("clique_toy")["runs"]
    for method in ("none", "Chow-Liu"):
        assert f"{mean(run['hamming'] for run in toy if run['method'] == method):.3f}" in text


def test_margins_stand_as_they_were_measured():
    text = (ROOT / "docs" / "papers" / "m3l_2012.md").read_text(encoding="utf-8")
    for draws in record("changed_correlations")["problems"].values():
        for rule in draws.values():
            pair = [f"{mean(draw[who]['hamming'] for draw in rule):.2f}" for who in ("M3L", "independent")]
            assert ", ".join(pair) in text
    found = record("classifier_correlation")
    means = [mean(draw[at] for draw in found["hamming"]) for at in range(len(found["r"]))]
    for r in (-1.0, 0.0, 1.0):
        assert f"| {means[found['r'].index(r)]:.1f} |" in text
    methods = record("zero_shot_awa")["methods"]
    for method in ("independent", "M3L"):
        assert f"{mean(draw['hamming'] for draw in methods[method]):.2f}" in text
