"""Links within the repository lead somewhere, as whoever reads it there follows them."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.docs.blocks import PAGES, ROOT

READ = [*PAGES, ROOT / "CONTRIBUTING.md"]


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    titles = [text.content for one, text in pairwise(tokens) if one.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading_of_it(page: Path) -> None:
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    inside = [child for token in tokens for child in token.children or []]
    links = [str(one.attrs.get("href") or one.attrs.get("src") or "") for one in inside]
    dead: list[str] = []
    for link in filter(None, links):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


def test_every_picture_is_small_and_shown_on_some_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in READ)
    for picture in (ROOT / "docs" / "pictures").iterdir():
        assert picture.stat().st_size < 150_000, picture
        assert f"pictures/{picture.name}" in text, f"{picture} is on no page"
