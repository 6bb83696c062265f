"""The page in a headless Chromium: read, measured and photographed, with scripts and without.

``make browser`` installs one where apt-get can; the tests are skipped without one.  With
LABELWEAVE_SCREENSHOTS=FOLDER more screenshots are stored there.
"""

import html
import os
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.report import ReportOptions, write_report

EVIL = "<script>document.title='owned'</script>"
HARD = [EVIL, "n" * 300, "a label with a name of several words, " * 4, "ünï 中文", "x::y", "{{ 7 }}"]
TREE = lw.Taxonomy([("left", name) for name in HARD[:3]] + [("the right side", name) for name in HARD[3:]])
WIDTHS = {"desktop": 1280, "phone": 390}
MEASURE = """<script>
const root = document.documentElement;
const inside = ".scrolled, svg, .unseen";
const wide = [...document.querySelectorAll("main *")].filter(
  (part) => !part.closest(inside) && part.getBoundingClientRect().right > root.clientWidth + 1
);
document.title = JSON.stringify({
  over: root.scrollWidth - root.clientWidth,
  width: root.clientWidth,
  wide: wide.slice(0, 5).map((part) => part.className || part.tagName),
});
</script>"""
SORT = """<script>
const table = document.querySelector("table.sortable");
table.tHead.rows[0].cells[1].querySelector("button").click();
const counts = [...table.tBodies[0].rows].map((row) => row.cells[1].textContent);
table.tHead.rows[0].cells[1].querySelector("button").click();
const turned = [...table.tBodies[0].rows].map((row) => row.cells[1].textContent);
const filter = document.querySelector(".filter input");
filter.value = "TAG 3";
filter.dispatchEvent(new Event("input"));
const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
document.title = [counts.join(","), turned.join(","), shown.join(",")].join(";");
</script>"""

_SOME = [
    ("6", "desktop", "light"),
    ("100", "phone", "dark"),
    ("983", "desktop", "dark"),
    ("hard", "phone", "light"),
    ("graph", "phone", "light"),
    ("tree", "desktop", "light"),
]
_ALL = list(product(["6", "100", "983", "hard", "graph", "tree"], WIDTHS, ["light", "dark"]))
PICTURES = _ALL if "LABELWEAVE_SCREENSHOTS" in os.environ else _SOME

pytestmark = pytest.mark.browser


def labeled(n_labels, names=None):
    """Draw rows whose labels depend on a few features."""
    rng = np.random.default_rng(n_labels)
    X = rng.normal(size=(300, 20))
    scores = X @ rng.normal(size=(20, n_labels)) - rng.uniform(2, 9, n_labels)
    positives = sp.csr_array((scores + rng.normal(size=scores.shape) > 0).astype(np.int8))
    return X, lw.LabelMatrix(positives, None, names or [f"tag {k}" for k in range(n_labels)])


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of 6, 100 and 983 labels, and of names that are hard to display, in a graph and a tree too."""
    folder = tmp_path_factory.mktemp("pages")
    made = {name: folder / f"{name}.html" for name in ["6", "100", "983", "hard", "graph", "tree"]}
    for name, path in made.items():
        X, y = classes() if name == "tree" else labeled(*{"100": (100,), "983": (983,)}.get(name, (6,)))
        if name in ("hard", "graph"):
            y = lw.LabelMatrix(y.positives, None, HARD)
        model = chosen_model(name, y).fit(X[:200], y[:200])
        write_report(model, X[200:], y[200:], path, options=ReportOptions(title=name))
    return made


def chosen_model(name, y):
    if name == "graph":
        return lw.LabelGraphClassifier("full", tol=0.3)
    if name == "tree":
        return lw.KernelLogisticClassifier(taxonomy=TREE, hyperparameters="fixed")
    if name == "983":
        return lw.LowRankClassifier(rank=10, max_iter=3, tol=1.0)
    return lw.MaxMarginClassifier(label_covariance=lw.LabelCovariance.from_labels(y).shrink(0.2), tol=0.1)


def classes():
    """Draw rows of one class each, of those of the tree."""
    rng = np.random.default_rng(0)
    y = np.array(HARD, object)[rng.integers(0, len(HARD), 300)]
    return rng.normal(size=(300, 5)) + 2.0 * (y == EVIL)[:, None], y


def title(dom):
    return html.unescape(re.search("<title>(.*?)</title>", dom, re.S)[1])


def with_script(page, script):
    """Copy a page without its policy, with another script at the end."""
    text = page.read_text(encoding="utf-8")
    text = re.sub("<meta http-equiv=[^>]*>", "", text).replace("</body>", f"{script}</body>")
    copy = page.with_name(f"measured-{page.name}")
    copy.write_text(text, encoding="utf-8")
    return copy


def without_scripts(page):
    """Copy a page with a policy under which no script runs, not even its own."""
    text = page.read_text(encoding="utf-8")
    copy = page.with_name(f"silent-{page.name}")
    copy.write_text(re.sub("script-src '[^']*'", "script-src 'none'", text), encoding="utf-8")
    return copy


def words_of(text):
    body = re.sub("<(style|script)>.*?</\\1>", " ", text, flags=re.S)
    return html.unescape(re.sub("<[^>]*>", " ", body)).split()


@pytest.mark.parametrize("name", ["983", "hard", "graph", "tree"])
def test_reads_the_same_without_scripts(browser, pages, name):
    silent = browser(without_scripts(pages[name]), "--dump-dom")
    assert words_of(silent) == words_of(pages[name].read_text(encoding="utf-8"))
    assert "<button" not in silent
    usual = browser(pages[name], "--dump-dom")
    assert "<button" in usual  # the policy lets the page's own script run
    assert title(usual) == name  # and no other: not the one in a label's name


def test_another_script_is_refused(browser, pages):
    text = pages["6"].read_text(encoding="utf-8").replace("</main>", f"</main>{EVIL}")
    tampered = pages["6"].with_name("tampered.html")
    tampered.write_text(text, encoding="utf-8")
    assert title(browser(tampered, "--dump-dom")) == "6"


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *(("6", "phone"), ("100", "phone"), ("983", "phone"), ("hard", "phone"), ("hard", "desktop")),
        *(("graph", "phone"), ("graph", "desktop"), ("tree", "phone"), ("tree", "desktop")),
    ],
)
def test_nothing_sticks_out(browser, pages, name, device):
    copy = with_script(pages[name], MEASURE)
    found = title(browser(copy, "--dump-dom", f"--window-size={WIDTHS[device]},900"))
    assert '"over":0' in found, found
    assert '"wide":[]' in found, found


def test_the_baseline_is_seen_on_a_narrow_phone(browser, pages):
    script = """<script>
    const edge = document.documentElement.clientWidth;
    const cells = [...document.querySelectorAll(".metrics td:last-child")];
    const seen = cells.filter((cell) => cell.getBoundingClientRect().right <= edge);
    document.title = String(cells.length > 9 && seen.length === cells.length);
    </script>"""
    assert title(browser(with_script(pages["6"], script), "--dump-dom", "--window-size=360,900")) == "true"


def test_words_beside_bars_are_seen_on_a_narrow_phone(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 4))
    Y = lw.LabelMatrix((X[:, :3] > 0).astype(int), names=[f"a label of many letters, {k}" for k in range(3)])
    page = tmp_path / "p.html"
    write_report(
        lw.AutoLabelClassifier(members=["rbf"], time_budget=0.1).fit(X[:45], Y[:45]), X[45:], Y[45:], page
    )
    script = """<script>
    const edge = document.documentElement.clientWidth;
    const places = [...document.querySelectorAll(".chart text")].map((text) => text.getBoundingClientRect());
    const seen = places.filter((place) => place.left >= 0 && place.right <= edge);
    document.title = String(places.length > 9 && seen.length === places.length);
    </script>"""
    assert title(browser(with_script(page, script), "--dump-dom", "--window-size=360,900")) == "true"


def test_tables_are_sorted_and_filtered(browser, pages):
    down, up, shown = title(browser(with_script(pages["100"], SORT), "--dump-dom")).split(";")
    counts = [int(count) for count in down.split(",")]
    assert counts == sorted(counts, reverse=True)
    assert [int(count) for count in up.split(",")] == sorted(counts)
    assert {name.strip() for name in shown.split(",")} == {"tag 3", *(f"tag {k}" for k in range(30, 40))}


@pytest.mark.parametrize(("name", "device", "scheme"), PICTURES)
def test_screenshots(browser, pages, tmp_path, name, device, scheme):
    image = pytest.importorskip("matplotlib.image")
    folder = Path(os.environ.get("LABELWEAVE_SCREENSHOTS", tmp_path)).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{device}-{scheme}.png"
    size = (WIDTHS[device], 3000)
    browser(
        pages[name], f"--screenshot={path}", f"--window-size={size[0]},{size[1]}",
        f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
    )  # fmt: skip
    pixels = image.imread(path)[..., :3]
    assert pixels.shape[:2] == (size[1], size[0])
    ground = pixels[:5].mean()
    assert ground < 0.2 if scheme == "dark" else ground > 0.9
    assert (abs(pixels - pixels[0, 0]).max(axis=2) > 0.3).mean() > 0.01  # there is something to see
    quarters = [abs(part - part[0, 0]).max() for part in np.array_split(pixels, 4)]
    assert min(quarters) > 0.3


def test_prints_with_all_parts_open(browser, pages, tmp_path):
    page = without_scripts(pages["6"])
    text = page.read_text(encoding="utf-8")
    page.with_name("closed.html").write_text(text.replace("details::details-content", "no-such-tag"), "utf-8")
    n_pages = []
    for name in ("closed.html", page.name):
        browser(page.with_name(name), f"--print-to-pdf={tmp_path / name}")
        n_pages.append(len(re.findall(rb"/Type /Page\b", (tmp_path / name).read_bytes())))
    assert n_pages[1] > n_pages[0] + 2
