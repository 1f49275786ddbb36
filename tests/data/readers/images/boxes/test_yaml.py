"""As much of YAML as is needed, as a real reader of YAML has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.readers.images.boxes.yaml import little_yaml

yaml = pytest.importorskip("yaml")

TEXTS = [
    "path: ../data # here\ntrain: images/train\nval:\n  - a\n  - b c\nnc: 3\n",
    "nc: 3\nnames: [a, 'b, c', \"d: e\"]",
    "names:\n  0: cat\n  1: 'a dog'\n  2: \"it's\"\n",
    "names:\n- cat\n- a dog\n# nothing\n- 'it''s'\n",
    'names: {0: cat, 1: \'x, y\', 2: "a \\\\ # \\" b"}\ntrain: a#b\n',
    "names: [\n  cat,  # first\n  dog\n]\nval: x\n",
    "roboflow:\n  workspace: me\n  project: you\nnames: ['a']\n",
    "",
    "names: []\n",
    "path:\n",
]


def as_texts(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): as_texts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_texts(one) for one in value]
    return "" if value is None else str(value)


@pytest.mark.parametrize("text", TEXTS)
def test_agrees_with_a_reader_of_yaml(text: str) -> None:
    assert little_yaml(text) == as_texts(yaml.safe_load(text) or {})


plain = st.text("abc -_'\",:#[]{}\\é", min_size=1, max_size=8)


@given(names=st.lists(plain, min_size=1, max_size=5), flow=st.booleans(), mapped=st.booleans())
def test_names_that_were_dumped_come_back(names: list[str], flow: bool, mapped: bool) -> None:
    held = dict(enumerate(names)) if mapped else names
    text = yaml.safe_dump({"names": held}, default_flow_style=flow, allow_unicode=True, width=10**6)
    found = little_yaml(text.strip().removeprefix("{").removesuffix("}") if flow else text)
    assert found["names"] == as_texts(held)
