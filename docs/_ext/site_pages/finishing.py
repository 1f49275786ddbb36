"""What the theme leaves undone for readers who do not see the page, mended in what it has written.

Landmarks of one kind have names, headings of the navigation a level, and a cell without words is no
heading of a table.
"""

from pathlib import Path

MENDED = {
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results"></div>': '<h1>Search</h1>\n<div id="search-results"></div>',
}


def finish(folder: Path) -> None:
    """Mend every page of a site."""
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for written, meant in MENDED.items():
            text = text.replace(written, meant)
        page.write_text(text, encoding="utf-8")
