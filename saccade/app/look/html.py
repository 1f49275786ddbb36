"""The page that shows where a model looks, as one text: style, program and data in one file.

It needs nothing from outside and may reach nothing: its content policy names the program and the
style by their hashes, and lets it speak to its own server only when it was served by one.
"""

import base64
import hashlib
import posixpath
import re
from html import escape
from importlib.resources import files

from saccade.app.look.document import LookDocument, to_json

IMPORT = re.compile(r'^import \{([^}]*)\} from "([\w./-]+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function|const|let|class)", re.MULTILINE)
STYLES = (
    "style.css",
    "captioning/style.css",
    "classification/style.css",
    "detection/style.css",
    "understanding/style.css",
    "joint/style.css",
    "painting/style.css",
)


def page_html(document: LookDocument | None, *, served: bool = False) -> str:
    """One self-contained page; without a document it waits for its server to give one."""
    style, script = "".join(map(_file, STYLES)), bundle()
    title = "Where a model looks" if document is None else document.title
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


def json_in_html(document: LookDocument) -> str:
    r"""JSON that no text in it can end: `<`, `>` and `&` as \u003c, \u003e and \u0026.

    Everything outside ASCII is escaped too, and with it U+2028 and U+2029.
    """
    text = to_json(document)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def bundle() -> str:
    """The page's program as one module, without the imports and exports that joined its parts.

    Names are therefore unique among all modules, and no text in them ends a script.
    """
    sources = page_modules().values()
    return "\n".join(EXPORT.sub("", IMPORT.sub("", source)) for source in sources)


def page_modules() -> dict[str, str]:
    """`main` and all that it needs, each module after those that it imports."""
    sources: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in sources:
            source = _file(f"{name}.js")
            for _, origin in IMPORT.findall(source):
                add(posixpath.normpath(posixpath.join(posixpath.dirname(name), origin)))
            sources[name] = source

    add("main")
    return sources


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _file(name: str) -> str:
    return (files("saccade.app.look") / "page" / name).read_text(encoding="utf-8")


def framed(document: LookDocument) -> str:
    """The page in a frame of its own, for notebooks: neither reaches into the other.

    The frame has an origin of its own, too: it may run its program and save files, no more.
    """
    return (
        f'<iframe srcdoc="{escape(page_html(document), quote=True)}" '
        'sandbox="allow-scripts allow-downloads" title="where the model looked" '
        'style="width:100%;height:760px;border:0"></iframe>'
    )
