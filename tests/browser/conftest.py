"""A real browser with no network, and a page in it that must neither complain nor call out."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from saccade.app.look.document import read_json
from saccade.app.look.html import page_html
from tests.browser.documents import Made, long_language

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)


@dataclass
class Opened:
    """A page, what it said on the console and what it asked the network for."""

    page: Any
    path: Path
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def readout(self) -> str:
        return self.page.locator("#readout").inner_text()

    def settle(self) -> None:
        """Wait until what was asked for has been drawn, however busy the machine is."""
        self.page.wait_for_timeout(80)
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def address(self) -> str:
        """Where the page is. The browser tells of changes later than it makes them."""
        return self.page.evaluate("location.href")


Open = Callable[..., Opened]


@pytest.fixture(scope="module")  # its event loop must not be left to whatever is tested next
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on the path")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open a document from a file; afterwards, nothing was complained of and nothing fetched."""
    every: list[tuple[Opened, Any]] = []

    def open_it(
        document: dict[str, Any],
        *,
        state: str = "",
        width: int = 1440,
        before: str = "",
        ready: str = "html[data-ready]",
        **settings: Any,
    ) -> Opened:
        path = tmp_path / f"look{len(every)}.html"
        path.write_text(page_html(read_json(json.dumps(document))), encoding="utf-8")
        view = {"width": width, "height": 900}
        context = browser.new_context(viewport=view, offline=True, **settings)
        context.route(lambda address: not address.startswith("file:"), lambda route: route.abort())
        context.set_default_timeout(6000)
        page = context.new_page()
        opened = Opened(page, path)
        page.on("console", lambda message: opened.complaints.append(message.text))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on("request", lambda request: opened.requests.append(request.url))
        if before:
            page.add_init_script(before)
        page.goto(f"{path.as_uri()}{state}")
        page.wait_for_selector(ready)
        every.append((opened, context))
        opened.settle()
        return opened

    yield open_it
    for opened, context in every:
        context.close()
        assert opened.complaints == []
        outside = [
            url for url in opened.requests if not url.startswith(("file:", "blob:", "data:"))
        ]
        assert outside == []


@pytest.fixture(scope="session")
def long_made() -> Made:
    return long_language()


def table(page: Any, where: str) -> tuple[list[str], list[str], list[list[float]]]:
    """The table alternative of a card: column names, row names, numbers."""
    root = page.locator(f"{where} table.numbers")
    columns = root.locator("thead th").all_inner_texts()
    rows = root.locator("tbody th").all_inner_texts()
    cells = root.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))"
    )
    numbers = [[float(cell.replace("−", "-")) for cell in row] for row in cells]
    return columns, rows, numbers
