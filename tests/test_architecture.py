"""One way down, one idea per file, and no drawer for odds and ends."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OTHERS_MODELS = ("attention", "look", "modules")  # where others' models are watched, as they are
LAYERS = ("attention", "blocks", "models", "decode", "tasks", "train", "app")
BOTTOM = {
    "errors": set[str](),
    "config": {"errors"},
    "data": {"errors", "config", "metrics"},
    "metrics": {"errors", "config", "data"},
}
ALLOWED = BOTTOM | {
    layer: {*BOTTOM, *LAYERS[: position + 1]} for position, layer in enumerate(LAYERS)
}
ALLOWED["decode"] -= {"models"}  # it knows what a model must offer, but no model
FILES = sorted((ROOT / "saccade").rglob("*.py"))
EVERY_FILE = [*FILES, *sorted((ROOT / "tests").rglob("*.py"))]


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of a file's syntax tree; no test changes it."""
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def imported(path: Path) -> frozenset[str]:
    """The full name of everything a file imports, wherever in the file it does so."""
    names: set[str] = set()
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: -node.level] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return frozenset(names)


def layer(name: str) -> str | None:
    """`saccade.models.text.gpt.Gpt` lies in `models`."""
    parts = name.split(".")
    return parts[1] if parts[0] == "saccade" and len(parts) > 1 and parts[1] in ALLOWED else None


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way_down(path: Path) -> None:
    parts = path.relative_to(ROOT / "saccade").with_suffix("").parts
    if parts[0] not in ALLOWED:
        pytest.skip("the package itself is a door to everything")
    reached = {name: layer(name) for name in imported(path)}
    wrong = {
        name
        for name, where in reached.items()
        if where is not None and where not in ALLOWED[parts[0]] | {parts[0]}
    }
    assert wrong == set()


def test_every_folder_has_its_place() -> None:
    here = {path.name for path in (ROOT / "saccade").iterdir() if (path / "__init__.py").exists()}
    assert here == set(LAYERS) | {"data", "metrics"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_files_are_short() -> None:
    lengths = {named(path): len(path.read_text().splitlines()) for path in EVERY_FILE}
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}


def long_functions(path: Path) -> dict[str, int]:
    """Functions of more than 40 lines, their docstrings not counted."""
    found: dict[str, int] = {}
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node) is not None and first.end_lineno is not None:
                lines -= first.end_lineno - first.lineno + 1
            if lines > 40:
                found[f"{named(path)}::{node.name}"] = lines
    return found


def test_functions_are_short() -> None:
    assert {name: n for path in EVERY_FILE for name, n in long_functions(path).items()} == {}


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}
    parts = {path: path.relative_to(ROOT).with_suffix("").parts for path in EVERY_FILE}
    assert [
        path for path in EVERY_FILE if {part.strip("_") for part in parts[path]} & drawers
    ] == []


def importers(files: list[Path], *names: str) -> list[str]:
    """Files that import any of these packages or names."""
    return [
        named(path)
        for path in files
        if any(f"{found}.".startswith(f"{name}.") for found in imported(path) for name in names)
    ]


def test_annotations_stay_visible_to_the_shape_checker() -> None:
    assert importers(EVERY_FILE, "__future__.annotations") == []


def test_what_we_do_not_depend_on_is_not_imported() -> None:
    assert importers(EVERY_FILE, "torchvision", "einops") == []


def test_saccade_does_not_need_what_only_tests_need() -> None:
    tools = ("pytest", "hypothesis", "beartype", "transformers", "tests")
    assert importers(FILES, *tools) == []


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(named(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


KINDS = ("translation", "language", "captioning")
OF_A_KIND = {
    "translation": {"TranslationSettings", "TranslationModel", "Translator", "Translation"},
    "language": {"LanguageSettings", "LanguageModel", "Writer", "LanguageModelling"},
    "captioning": {"CaptioningSettings", "CaptioningModel", "ImageCaptioner", "Captioning"},
}


def homes(kind: str) -> tuple[str, ...]:
    return f"saccade/tasks/{kind}/", f"saccade/app/kinds/{kind}/", f"saccade/app/look/{kind}/"


def calls(path: Path, name: str) -> list[ast.Call]:
    return [
        node
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def names_in(node: ast.AST) -> set[str]:
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def test_nobody_asks_of_which_kind_something_is() -> None:
    """Only a kind's own files know its settings, models and tools: others go by its protocol."""
    wrong = [
        f"{named(path)}:{call.lineno}"
        for path in FILES
        for call in calls(path, "isinstance")
        for kind in KINDS
        if names_in(call.args[1]) & OF_A_KIND[kind] and not named(path).startswith(homes(kind))
    ]
    assert wrong == []


def test_abilities_are_said_by_protocols_and_not_felt_for() -> None:
    """`getattr(settings, name)` over fields is no question; `getattr(model, "packs")` is one."""
    felt = {
        named(path): [ast.unparse(call) for call in (*calls(path, "hasattr"), *asks(path))]
        for path in FILES
        if path.relative_to(ROOT / "saccade").parts[:3] != OTHERS_MODELS
    }
    assert {path: asked for path, asked in felt.items() if asked} == {}


def asks(path: Path) -> list[ast.Call]:
    return [one for one in calls(path, "getattr") if isinstance(one.args[1], ast.Constant)]


def test_no_class_is_known_by_the_spelling_of_its_name() -> None:
    wrong = [
        f"{named(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in FILES
        if path.relative_to(ROOT / "saccade").parts[:3] != OTHERS_MODELS
        for node in nodes(path)
        if isinstance(node, ast.Compare)
        and any(
            isinstance(side, ast.Attribute) and side.attr == "__name__"
            for side in (node.left, *node.comparators)
        )
        and "__main__" not in ast.unparse(node)
    ]
    assert wrong == []
