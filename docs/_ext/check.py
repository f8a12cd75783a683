"""Check the built site without a network: every internal link is valid, and no page needs external files.

`python docs/_ext/check.py docs/_build/html` prints the errors and exits with 1, or prints the number of checked pages.
Links to other sites are counted and not followed.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    "img": "src",
    "script": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "manifest"}
"""Of <link>: what a browser asks for; the others (next, search) are links."""
CSS = re.compile(r"""(?:url\(|@import\s+)\s*["']?\s*((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """The names in a page, its links, and the files that a browser would load for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note names, links and resources of one tag."""
        given = {key: value or "" for key, value in attrs}
        self.names |= {given[key] for key in ("id", "name") if key in given}
        if tag in FETCHED and given.get(FETCHED[tag]):
            self.fetched.append(given[FETCHED[tag]])
        elif tag == "link" and "href" in given:
            asked = RELATIONS & set(given.get("rel", "").split())
            (self.fetched if asked else self.links).append(given["href"])
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.fetched += CSS.findall(given.get("style", ""))


def wrong(site: Path) -> tuple[list[str], int, int]:
    """(errors, links within the site, links to others) of all pages and style sheets of a site."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    found, inner, outer = [], 0, 0
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        found += [f"{here} fetches {address}" for address in page.fetched if urlsplit(address).netloc]
        for address in [*page.links, *(a for a in page.fetched if not urlsplit(a).netloc)]:
            if urlsplit(address).scheme or urlsplit(address).netloc:
                outer += 1
                continue
            inner += 1
            found += [f"{here} links {address}: {reason}" for reason in [_broken(path, address, pages)] if reason]
    for path in site.rglob("*.css"):
        found += [f"{path.relative_to(site)} fetches {a}" for a in CSS.findall(path.read_text(encoding="utf-8"))]
    return found, inner, outer


def _broken(path: Path, address: str, pages: dict[Path, Page]) -> str:
    """The reason why a link of a page is broken; empty for a valid link."""
    parts = urlsplit(address)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return "no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
        return "no such place on that page"
    return ""


def main(site: Path) -> int:
    """Print the errors of a site, or the number of checked pages; return the exit code."""
    found, inner, outer = wrong(site)
    print(
        "\n".join(found) or f"{inner} links within the site lead somewhere, {outer} lead to others; nothing is fetched"
    )
    return 1 if found or not inner else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
