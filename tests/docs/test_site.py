"""The site: built without a warning, no dead link, code beside its formulas, for everybody."""

import importlib
import inspect
import re
from functools import cache, reduce
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import saccade
from saccade.app.cli import COMMANDS
from saccade.app.cli.bench import BENCHES
from saccade.app.kinds import HOMES, kind_named
from saccade.train.recipes import RECIPES
from tests.docs.conftest import Site

pytestmark = pytest.mark.slow
bs4 = pytest.importorskip("bs4", reason="the docs extra is not installed")

FORMULAS = {  # of each lecture some, and the page that leads to it
    "saccade/models/text/rnn_language.py::RnnLanguageModel": "how/words.html",
    "saccade/models/text/seq2seq.py::Seq2Seq.start": "how/words.html",
    "saccade/attention/scores.py::Additive": "how/attention.html",
    "saccade/attention/ladder.py::with_scaled_dot": "how/attention.html",
    "saccade/attention/attend.py::attend": "how/attention.html",
    "saccade/attention/multihead.py::MultiHeadAttention": "how/attention.html",
    "saccade/blocks/positions.py::sinusoids": "how/transformer.html",
    "saccade/blocks/decoder.py::DecoderLayer": "how/transformer.html",
    "saccade/tasks/captioning/losses.py::score_function": "how/captioning.html",
    "saccade/models/caption/show_attend_tell.py::ImageAttention.draw": "how/captioning.html",
    "saccade/models/vision/vit.py::Vit": "how/images.html",
    "saccade/models/joint/co_attention.py::CoAttention": "how/joint.html",
    "saccade/tasks/text_to_image/task.py::text_image_losses": "how/joint.html",
    "saccade/attention/look/rollout.py::roll": "how/looking.html",
}


@cache
def read(site: Site, page: str) -> Any:
    return bs4.BeautifulSoup((site.folder / page).read_text(encoding="utf-8"), "html.parser")


def test_it_is_built_without_a_warning(site: Site) -> None:
    assert site.said == ""
    assert site.code == 0
    assert len(site.pages()) > 35


def test_no_link_is_dead_and_none_is_needed_from_a_network(site: Site) -> None:
    soups = {path: read(site, str(path)) for path in site.pages()}
    names = {path: {tag["id"] for tag in soup.find_all(id=True)} for path, soup in soups.items()}
    dead, fetched, count = list[str](), list[str](), 0
    for path, soup in soups.items():
        for tag in soup.find_all(["a", "img", "link", "script", "source", "use", "iframe"]):
            address = tag.get("href") or tag.get("src") or ""
            if re.match(r"(https?:)?//", address):
                if tag.name != "a":
                    fetched.append(address)
                continue
            if not address or address.startswith(("data:", "mailto:")):
                continue
            file, _, anchor = unquote(address).partition("#")
            target = (path.parent / file.partition("?")[0]).resolve() if file else path
            count += 1
            there = target.is_file() and (not anchor or anchor in names.get(target, {anchor}))
            if not there:
                dead.append(f"{path.relative_to(site.folder)} → {address}")
    assert dead == []
    assert fetched == []
    assert count > 1000


@pytest.mark.parametrize(("place", "page"), FORMULAS.items())
def test_a_formula_names_file_and_line_and_the_code_is_the_code(
    place: str, page: str, site: Site
) -> None:
    file, _, name = place.partition("::")
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    lines, first = inspect.getsourcelines(inspect.unwrap(reduce(getattr, name.split("."), module)))
    shown = read(site, page).find(attrs={"data-place": place})
    assert shown.find(class_="equation").text
    assert f"{file}, lines {first} to {first + len(lines) - 1}" in shown.text
    code = shown.find("pre")
    numbers = [number.extract().text.strip() for number in code.find_all(class_="linenos")]
    assert numbers == [str(first + place) for place in range(len(lines))]
    source = (Path(saccade.__file__).parents[1] / file).read_text().splitlines()
    assert code.text.splitlines() == source[first - 1 : first - 1 + len(lines)]


def test_every_formula_is_on_one_page(site: Site) -> None:
    table = (Path(saccade.__file__).parents[1] / "docs" / "formulas.md").read_text()
    named = re.findall(r"`(saccade/[\w/]+\.py::[\w.]+)`", table)
    pages = [read(site, str(path)) for path in site.folder.glob("how/*.html")]
    shown = [tag["data-place"] for page in pages for tag in page.find_all(class_="formula")]
    assert len(shown) == len(set(shown))
    assert set(shown) == set(named)
    equations = [tag for page in pages for tag in page.find_all(class_="equation")]
    assert len(equations) == len(named)


def test_every_recipe_is_there_with_its_command(site: Site) -> None:
    page = read(site, "recipes.html")
    titles = {title.text.rstrip("¶#") for title in page.find_all("h3")}
    assert titles == set(RECIPES)
    commands = [block.text.split() for block in page.find_all("pre")]
    assert {words[2] for words in commands if words[:2] == ["saccade", "train"]} == set(RECIPES)
    assert "40.66" in page.find(id="transformer-multi30k").text


def test_every_command_and_option_is_there(site: Site) -> None:
    page = read(site, "reference/command-line.html")
    titles = {title.text.rstrip("¶#") for title in page.find_all("h2")}
    assert titles == {f"saccade {name}" for name in COMMANDS}
    folded = {summary.text for summary in page.find_all("summary")}
    assert folded > {f"saccade bench {name}" for name in BENCHES}
    for kind in HOMES:
        for verb, command in {"predict": "predict", "eval": "evaluate", "look": "look"}.items():
            assert f"saccade {verb}, {kind}" in folded
            signature = inspect.signature(getattr(kind_named(kind), command))
            title = page.find("summary", string=f"saccade {verb}, {kind}")
            plain = [one for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY]
            simple = [one.name for one in plain if one.annotation in (bool, int, float, str)]
            for option in simple:
                assert option.replace("_", "-") in title.parent.text, (kind, verb, option)


def test_what_is_exported_is_there(site: Site) -> None:
    page = read(site, "reference/python.html")
    for name in saccade.__all__:
        assert page.find(id=f"saccade.{name}"), name
    assert "engine_precision" in page.find(id="saccade.load").text


# Words of code are thousands, of a dozen colours: those of one page stand for all.
PLAIN_CODE = """() => document.querySelectorAll(".highlight pre").forEach(
    block => block.replaceChildren(block.textContent))"""
RUN_AXE = """rules => axe.run(document, {resultTypes: ["violations"], preload: false, ...rules})
  .then(found => found.violations.map(one => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`))"""
CONTRAST = {"runOnly": ["color-contrast"]}
WITH_CODE = "reference/python.html"
KINDS = ("index.html", "captioning.html", "recipes.html", "how/images.html", WITH_CODE)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_accessible_offline(site: Site, browser: Any, axe: str, theme: str) -> None:
    view = {"width": 1280, "height": 900}
    context = browser.new_context(viewport=view, offline=True, color_scheme=theme)
    page, complaints, requests = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    wrong: dict[str, list[str]] = {}
    for path in site.pages():
        name = str(path.relative_to(site.folder))
        if theme == "dark" and name not in KINDS:  # the rules are the same, the colours are not
            continue
        page.goto(path.as_uri())
        if name != WITH_CODE:
            page.evaluate(PLAIN_CODE)
        page.evaluate(axe)
        found = page.evaluate(RUN_AXE, CONTRAST if theme == "dark" else {})
        if found:
            wrong[name] = found
    context.close()
    assert wrong == {}
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


# The theme lets its column scroll where the window is narrow: neither may have to.
TOO_WIDE = """() => [...document.querySelectorAll("html, .main, .content")]
  .some(part => part.scrollWidth > part.clientWidth)"""


@pytest.mark.parametrize("width", [390, 1440])
def test_no_page_is_wider_than_its_window(site: Site, browser: Any, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, offline=True)
    page = context.new_page()
    wide: list[str] = []
    for path in site.pages():
        page.goto(path.as_uri())
        if page.evaluate(TOO_WIDE):
            wide.append(str(path.relative_to(site.folder)))
    context.close()
    assert wide == []


def test_search_finds_without_a_network(site: Site, browser: Any) -> None:
    context = browser.new_context(offline=True)
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{(site.folder / 'search.html').as_uri()}?q=Gumbel")
    page.wait_for_selector("#search-results li a", timeout=10_000)
    found = page.locator("#search-results li a").evaluate_all("all => all.map(one => one.href)")
    context.close()
    assert any("how/joint.html" in address for address in found)
    assert complaints == []
