"""The page that shows where a model looks, as one text: style, program and data in one file.

It needs nothing from outside and may reach nothing: its content policy names the program and the
style by their hashes, and lets it speak to its own server only when it was served by one.
"""

import base64
import hashlib
import json
import re
from html import escape
from importlib.resources import files
from typing import Any

# In the order in which they build on each other.
MODULES = (
    *("dom", "format", "decode", "tiles", "axis", "attention", "gaze", "statistics", "colour"),
    *("state", "controls", "plan", "heatmap", "picture", "tools", "ribbons", "scrubber", "beam"),
    *("grid", "readout", "picks", "strip", "margins", "long", "detail", "nbest"),
    *("caption-maps", "caption-paint", "caption-stage", "caption-strip", "caption-side"),
    *("caption-tiles", "caption-tools", "caption-gallery", "caption-eye", "caption"),
    *("caption-compare", "translation", "language", "compare", "picture-drop", "server", "help"),
    "main",
)

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|let|class)", re.MULTILINE)
_NAME = re.compile(r"^(export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)


def page_html(document: dict[str, Any] | None, *, served: bool = False) -> str:
    """One self-contained page; without a document it waits for its server to give one."""
    style, script = _file("style.css") + _file("caption.css"), bundle()
    title = "Where a model looks" if document is None else str(document.get("title", "Saccade"))
    parts = {
        "policy": content_security_policy(script, style, served=served),
        "server": '<meta name="saccade-server" content="1">\n' if served else "",
        "title": escape(title),
        "style": style,
        "script": script,
        "document": "" if document is None else json_in_html(document),
    }
    # One pass, so that a brace in the data is not taken for a place to fill.
    return re.sub(r"\{(\w+)\}", lambda place: parts[place[1]], _file("index.html"))


def content_security_policy(script: str, style: str, *, served: bool) -> str:
    """What the page may do: run this program, in this style, and nothing else."""
    rules = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "worker-src": "blob:",
        "img-src": "data: blob:",
        "connect-src": "'self'" if served else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def json_in_html(document: dict[str, Any]) -> str:
    r"""JSON that no text in it can end: `<`, `>` and `&` as \u003c, \u003e and \u0026.

    Everything outside ASCII is escaped too, and with it U+2028 and U+2029.
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def bundle(modules: tuple[str, ...] = MODULES) -> str:
    """All modules as one, in order, without the imports and exports that joined them."""
    return join_modules({name: _file(f"{name}.js") for name in modules})


def join_modules(sources: dict[str, str]) -> str:
    """Text of a single module out of several, each of which may import from earlier ones only."""
    owner: dict[str, str] = {}
    given: dict[str, str] = {}
    for name, source in sources.items():
        for names, origin in _IMPORT.findall(source):
            for wanted in filter(None, (part.strip() for part in names.split(","))):
                if given.get(wanted) != origin:
                    raise ValueError(f"{name}.js imports {wanted}, which {origin}.js does not give")
        for exported, defined in _NAME.findall(source):
            if defined in owner:
                raise ValueError(f"{name}.js and {owner[defined]}.js both define {defined}")
            owner[defined] = name
            if exported:
                given[defined] = name
    text = "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources.values())
    if left := re.search(r"^(import|export)\b.*", text, re.MULTILINE):
        raise ValueError(f"the page cannot join this line: {left[0]}")
    if re.search(r"</script|<!--", text, re.IGNORECASE):
        raise ValueError("the page's program may hold neither </script nor <!--")
    return text


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _file(name: str) -> str:
    return (files("saccade.app.look") / "page" / name).read_text(encoding="utf-8")


def framed(document: dict[str, Any]) -> str:
    """The page in a frame of its own, for notebooks: neither reaches into the other."""
    return (
        f'<iframe srcdoc="{escape(page_html(document), quote=True)}" '
        'title="where the model looked" style="width:100%;height:760px;border:0"></iframe>'
    )
