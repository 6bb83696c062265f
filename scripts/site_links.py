"""Check the internal links of a built site: files that exist, and places in them.

Every ``href`` and ``src`` of every page is checked on disk; links to other sites are ignored.  Exits with
status 1 and lists broken links.  Example: ``python scripts/site_links.py docs/_build``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Page(HTMLParser):
    """A page: the names of its places, and its links."""

    places: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Record the id of a tag, and its link."""
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value or "")
            elif name == "src" or (name == "href" and tag in ("a", "link")):
                self.links.append(value or "")


def read_pages(site: Path) -> dict[Path, Page]:
    """Read all pages below a folder."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        page = pages[path.resolve()] = Page()
        page.feed(path.read_text(encoding="utf-8"))
    return pages


def broken_links(site: Path) -> list[str]:
    """List links to a missing file of the site, or to a missing place in it."""
    pages = read_pages(site)
    broken = []
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            shown = f"{path.relative_to(site.resolve())}: {link}"
            if not target.is_file():
                broken.append(f"{shown} is no file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                broken.append(f"{shown} has no such place")
    return broken


def main(folder: str) -> int:
    """Check a site; the number returned is the exit status."""
    site = Path(folder)
    broken = broken_links(site)
    print("\n".join([*broken, f"{len(read_pages(site))} pages, {len(broken)} links lead nowhere"]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
