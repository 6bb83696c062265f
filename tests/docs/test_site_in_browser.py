"""The site in a headless Chromium: nothing wider than a phone; screenshots, narrow and wide, light and dark.

``make docs`` runs it on the built site; it is skipped without a site or a browser.  With
LABELWEAVE_SCREENSHOTS=FOLDER screenshots of all pages named here are stored there.
"""

import html
import os
import re
from itertools import product
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "docs" / "_build"
PAGES = ["index", "install", "tutorial", "what_you_have", "coming_from/scikit_learn", "recipes"]
PAGES += ["command_line", "data_formats", "capabilities"]
PAGES += ["benchmarks", "papers/index", "papers/leml_2014", "papers/seeger_2008", "papers/m3l_2010"]
PAGES += ["papers/m3l_2012", "papers/later", "papers/cgm_2015", "gallery/index", "api/index"]
PAGES += ["changelog"]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
MEASURE = """<script>
addEventListener("load", () => {
  const root = document.documentElement;
  document.title = JSON.stringify({over: root.scrollWidth - root.clientWidth});
});
</script>"""

pytestmark = pytest.mark.browser


def page_of(name):
    path = SITE / f"{name}.html"
    if not path.exists():
        pytest.skip("the site is not built; `make docs` builds it")
    return path


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_a_phone(browser, name):
    page = page_of(name)
    copy = page.with_name(f"measured-{page.name}")
    copy.write_text(page.read_text("utf-8").replace("</body>", f"{MEASURE}</body>"), "utf-8")
    try:
        dom = browser(copy, "--dump-dom", f"--window-size={','.join(map(str, SIZES['phone']))}")
    finally:
        copy.unlink()
    assert '"over":0' in html.unescape(re.search("<title>(.*?)</title>", dom, re.S)[1])


@pytest.mark.skipif("LABELWEAVE_SCREENSHOTS" not in os.environ, reason="pictures are to be looked at")
@pytest.mark.parametrize(("name", "device", "scheme"), list(product(PAGES, SIZES, ["light", "dark"])))
def test_pictures(browser, name, device, scheme):
    folder = Path(os.environ["LABELWEAVE_SCREENSHOTS"]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / f"{name.replace('/', '-')}-{device}-{scheme}.png"
    flags = [f"--window-size={','.join(map(str, SIZES[device]))}", f"--screenshot={picture}"]
    browser(page_of(name), *flags, *(["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []))
    assert picture.stat().st_size > 5_000
