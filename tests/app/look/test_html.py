"""The page as one text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from saccade.app.look import html
from saccade.app.look.html import MODULES, bundle, join_modules, json_in_html, page_html

PAGE = Path(html.__file__).parent / "page"
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


def test_any_document_comes_back_from_the_page_unchanged() -> None:
    document = {"title": EVIL, "looks": [EVIL, {"a": [1, None, 0.5]}], EVIL: EVIL}
    parts = Parts(page_html(document))
    assert [attributes.get("type") for attributes, _ in parts.scripts] == [
        "application/json",
        "module",
    ]
    assert json.loads(parts.scripts[0][1]) == document


def test_no_text_can_leave_its_script() -> None:
    text = json_in_html({"a": EVIL})
    assert not re.search(r"[<>&\u2028\u2029]", text)
    assert json.loads(text) == {"a": EVIL}


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        page_html({"a": float("nan")})


@pytest.mark.parametrize("served", [False, True])
def test_only_the_page_itself_may_run(served: bool) -> None:
    parts = Parts(page_html({"title": "x"}, served=served))
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
    assert sorted(f"{name}.js" for name in MODULES) == sorted(p.name for p in PAGE.glob("*.js"))
    text = bundle()
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)
    assert "class TranslationView" in text


def test_modules_are_joined_without_imports_and_exports() -> None:
    joined = join_modules(
        {
            "a": "export const one = 1;\nexport async function two() {}\n",
            "b": 'import {\n  one, two,\n} from "./a.js";\n\nconst three = one;\n',
        }
    )
    expected = "const one = 1; async function two() {} const three = one;"
    assert " ".join(joined.split()) == expected


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"b": 'import { one } from "./a.js";\n'}, "b.js imports one, which a.js does not give"),
        (
            {"a": "const one = 1;\n", "b": 'import { one } from "./a.js";\n'},
            "b.js imports one, which a.js does not give",
        ),
        (
            {"a": "const one = 1;\n", "b": "function one() {}\n"},
            "b.js and a.js both define one",
        ),
        ({"a": 'import x from "https://cdn"\n'}, "cannot join this line: import x"),
        ({"a": 'const a = "</script>";\n'}, "neither </script nor <!--"),
    ],
)
def test_what_cannot_be_joined_is_refused(sources: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        join_modules(sources)


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_small_use_what_they_import_and_never_parse_text_as_markup(name: str) -> None:
    source = (PAGE / f"{name}.js").read_text()
    assert len(source.splitlines()) <= 400
    body = re.sub(r"^import [^;]*;$", "", source, flags=re.MULTILINE)
    for names in re.findall(r"^import \{([^}]*)\}", source, re.MULTILINE):
        for wanted in filter(None, (part.strip() for part in names.split(","))):
            assert re.search(rf"\b{wanted}\b", body), f"{wanted} is not used"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", source)
