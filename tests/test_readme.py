"""README tells of the claims what docs/figures.md has measured, and its links lead somewhere."""

import re
from pathlib import Path

from saccade.app.figures import CLAIMS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def verdicts(text: str) -> dict[str, tuple[str, ...]]:
    """The rows of claims: the claim, whether it holds, and what was measured."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| C")]
    return {key.strip(): tuple(cell.strip() for cell in rest[:3]) for key, *rest in rows}


def test_all_verdicts_are_those_of_the_page_that_measured_them() -> None:
    told = verdicts(README)
    assert list(told) == list(CLAIMS)
    assert told == verdicts((ROOT / "docs/figures.md").read_text(encoding="utf-8"))
    assert all(re.search(r"\d", measured) for _, _, measured in told.values())


def test_every_file_it_points_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#([\w-]+))?\)", README)
    assert len(links) > 15
    for path, anchor in links:
        found = ROOT / path
        assert found.exists(), path
        if anchor:
            heads = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w-]", "", h.lower().replace(" ", "-")) for h in heads}


def test_it_is_read_in_five_minutes() -> None:
    prose = re.sub(r"^(```.*?^```|\|.*?)$", "", README, flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) < 5 * 200
