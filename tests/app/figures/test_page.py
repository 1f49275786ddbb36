"""The page of all claims: one file that needs nothing, in which no text is taken for HTML."""

import re
from html.parser import HTMLParser

from saccade.app.figures.page import page_of
from tests.app.figures.reports import report

VOID = {"meta", "br", "link", "img"}


class Tags(HTMLParser):
    """Every tag must be closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_reaches_for_nothing() -> None:
    page = page_of([report(), report(key="C10", holds=False), report(key="C11", holds=None)])
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert not tags.seen & {"script", "link", "img", "iframe"}
    assert "default-src 'none'" in page
    outside = set(re.findall(r"https?://[^\"' <]+", page))
    assert outside == {"http://www.w3.org/2000/svg"}  # a name, not a place


def test_each_claim_says_whether_it_holds_and_what_was_run() -> None:
    page = page_of([report(), report(key="C10", holds=False), report(key="C11", holds=None)])
    for words in ("holds here", "does not hold here", "open"):
        assert f"{words}</span>" in page
    assert page.count('<section id="c10">') == page.count('<a href="#c10">') == 1
    assert "saccade train &lt;x&gt;" in page
    assert "a &amp; &lt;b&gt; hold" in page
    assert "CPU, 2 threads" in page
    assert "seeds 0, 1" in page
    assert "<one>" not in page


def test_the_page_has_colours_for_light_and_for_dark() -> None:
    assert page_of([report()]).count("prefers-color-scheme") >= 2
