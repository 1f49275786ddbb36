"""The page as one text."""

import base64
import hashlib
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from saccade.app.look import html
from saccade.app.look.document import FORMAT, VERSION, AxisEntry, LookDocument, LookEntry, read_json
from saccade.app.look.html import IMPORT, bundle, json_in_html, page_html, page_modules

PAGE = Path(html.__file__).parent / "page"
NAME = re.compile(r"^(export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)
EVIL = "</script><script>alert(1)</script><!-- & \u2028\u2029 {script} é"


class Parts(HTMLParser):
    """What a browser would find: the text of each script and style, and the tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.style = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        inside = self.tags[-1][0] if self.tags else ""
        if inside == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif inside == "style":
            self.style += data

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}", {}))

    def policy(self) -> str:
        found = [a["content"] for t, a in self.tags if a.get("http-equiv")]
        assert len(found) == 1
        assert found[0] is not None
        return found[0]


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def document(title: str = "x") -> LookDocument:
    axis = AxisEntry(tokens=[title, title])
    look = LookEntry(
        run=title, label=title, text=title, score=0.5, log_probability=None, finished=None,
        axes={title: axis}, sites=[],
    )  # fmt: skip
    return LookDocument(kind=title, title=title, notes=[title], looks=[look], blobs=[])


def test_any_document_comes_back_from_the_page_unchanged() -> None:
    parts = Parts(page_html(document(EVIL)))
    assert [attributes.get("type") for attributes, _ in parts.scripts] == [
        "application/json",
        "module",
    ]
    assert read_json(parts.scripts[0][1]) == document(EVIL)


def test_no_text_can_leave_its_script() -> None:
    text = json_in_html(document(EVIL))
    assert not re.search(r"[<>&\u2028\u2029]", text)
    assert read_json(text) == document(EVIL)


@pytest.mark.parametrize("served", [False, True])
def test_only_the_page_itself_may_run(served: bool) -> None:
    parts = Parts(page_html(document(), served=served))
    policy = dict(rule.split(" ", 1) for rule in parts.policy().split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == digest(parts.scripts[1][1])
    assert policy["style-src"] == digest(parts.style)
    assert policy["connect-src"] == ("'self'" if served else "'none'")
    assert policy["worker-src"] == "blob:"
    assert any(attributes.get("name") == "saccade-server" for _, attributes in parts.tags) == served


def test_nothing_is_fetched_from_anywhere() -> None:
    parts = Parts(page_html(None))
    links = [a.get("src") or a.get("href") for _, a in parts.tags if a.get("src") or a.get("href")]
    assert links == ["data:,"]
    assert not re.search(r"@import|url\(", parts.style)


def test_a_page_without_a_document_waits() -> None:
    parts = Parts(page_html(None, served=True))
    assert parts.scripts[0][1] == ""


def test_every_module_is_in_the_bundle_once() -> None:
    files = {path.relative_to(PAGE).with_suffix("").as_posix() for path in PAGE.rglob("*.js")}
    assert set(page_modules()) == files


def test_the_page_reads_the_version_that_is_written_and_shows_every_kind() -> None:
    main = page_modules()["main"]
    assert f"const VERSION = {VERSION};" in main
    assert f'const FORMAT = "{FORMAT}";' in main
    shown = re.findall(r"^  (\w+): \[\w+View, \w+View\],$", main, re.MULTILINE)
    images, texts = ["caption", "classification", "detection"], ["masked", "understanding"]
    assert shown == ["translation", "language", *images, *texts, "joint"]


def test_every_import_is_given_by_a_module_before_and_no_name_is_defined_twice() -> None:
    owner: dict[str, str] = {}
    given: dict[str, str] = {}
    for name, source in page_modules().items():
        for names, origin in IMPORT.findall(source):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), origin))
            for wanted in filter(None, (part.strip() for part in names.split(","))):
                assert given.get(wanted) == path, f"{name}.js imports {wanted} from {path}.js"
        for exported, defined in NAME.findall(source):
            assert defined not in owner, f"{name}.js and {owner[defined]}.js define {defined}"
            owner[defined] = name
            if exported:
                given[defined] = name


def test_no_import_is_left_in_the_bundle_and_nothing_that_ends_a_script() -> None:
    assert not re.search(r"^(import|export)\b", bundle(), re.MULTILINE)
    assert not re.search(r"</script|<!--", bundle(), re.IGNORECASE)


@pytest.mark.parametrize("name", page_modules())
def test_modules_are_small_use_what_they_import_and_never_parse_text_as_markup(name: str) -> None:
    source = (PAGE / f"{name}.js").read_text()
    assert len(source.splitlines()) <= 400
    body = re.sub(r"^import [^;]*;$", "", source, flags=re.MULTILINE)
    for names in re.findall(r"^import \{([^}]*)\}", source, re.MULTILINE):
        for wanted in filter(None, (part.strip() for part in names.split(","))):
            assert re.search(rf"\b{wanted}\b", body), f"{wanted} is not used"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", source)
