"""Settings survive the way to plain values and back; anything else is refused by name."""

import json
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.config import check_fraction, check_positive, from_dict, to_dict
from saccade.errors import ConfigError
from saccade.models import PRESETS
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.translation.task import TranslationSettings
from saccade.train.settings import TrainSettings


@dataclass(frozen=True, kw_only=True)
class Inner:
    """Settings within settings."""

    depth: int = 1


@dataclass(frozen=True, kw_only=True)
class Outer:
    """One field of every kind that settings have."""

    width: int = 1
    rate: float = 0.5
    name: str = ""
    on: bool = False
    kind: Literal["a", "b"] = "a"
    sizes: tuple[int, ...] = (1, 2)
    limit: int | None = None
    inner: Inner = field(default_factory=Inner)


outers = st.builds(
    Outer,
    width=st.integers(),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    name=st.text(),
    on=st.booleans(),
    kind=st.sampled_from(["a", "b"]),
    sizes=st.lists(st.integers()).map(tuple),
    limit=st.none() | st.integers(),
    inner=st.builds(Inner, depth=st.integers()),
)


@given(outers)
def test_settings_survive_json(outer: Outer) -> None:
    assert from_dict(Outer, json.loads(json.dumps(to_dict(outer)))) == outer


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_json(name: str) -> None:
    preset = PRESETS[name]
    assert from_dict(type(preset), json.loads(json.dumps(to_dict(preset)))) == preset


@pytest.mark.parametrize("kind", [TrainSettings, TranslationSettings, LanguageSettings])
def test_what_is_not_given_has_its_default(kind: type[Any]) -> None:
    assert from_dict(kind, {}) == kind()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": "12"}, "s.width='12' must be int, not str"),
        ({"width": 1.0}, "s.width=1.0 must be int, not float"),
        ({"width": True}, "s.width=True must be int, not bool"),
        ({"width": None}, "s.width=None must be int, not NoneType"),
        ({"width": [1]}, r"s.width=\[1\] must be int, not list"),
        ({"rate": "fast"}, "s.rate='fast' must be float, not str"),
        ({"rate": True}, "s.rate=True must be float, not bool"),
        ({"name": 3}, "s.name=3 must be str, not int"),
        ({"on": 1}, "s.on=1 must be bool, not int"),
        ({"kind": "c"}, "s.kind='c' must be one of: a, b"),
        ({"kind": []}, r"s.kind=\[\] must be one of: a, b"),
        ({"sizes": [1, "2"]}, "s.sizes='2' must be int, not str"),
        ({"limit": "no"}, "s.limit='no' must be int or NoneType, not str"),
        ({"inner": {"depth": 0.5}}, "s.inner.depth=0.5 must be int, not float"),
        ({"inner": 3}, "s.inner must be a table of settings, not int"),
        ({"widht": 3}, "s.widht is not a setting; there are: inner, kind, limit"),
        ({3: 3}, "s.3 is not a setting"),
        ([], "s must be a table of settings, not list"),
        (None, "s must be a table of settings, not NoneType"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(values: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict(Outer, values, where="s")


@pytest.mark.parametrize("values", [{"sizes": 3}, {"sizes": "12"}, {"sizes": None}])
def test_a_tuple_must_be_a_list(values: Any) -> None:
    with pytest.raises(ConfigError, match=r"s\.sizes="):
        from_dict(Outer, values, where="s")


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([f.name for f in fields(TrainSettings)]), junk))
def test_whatever_is_given_is_taken_or_refused_but_never_crashes(values: dict[str, Any]) -> None:
    try:
        taken = from_dict(TrainSettings, values)
    except ConfigError:
        return
    assert all(getattr(taken, name) == value for name, value in values.items())


def test_a_whole_number_will_do_for_a_rate() -> None:
    taken = from_dict(Outer, {"rate": 1})
    assert taken.rate == 1.0
    assert type(taken.rate) is float


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": 0}, "steps=0 must be at least 1"),
        ({"keep": 0}, "keep=0 must be at least 1"),
        ({"accumulate": -1}, "accumulate=-1 must be at least 1"),
        ({"ema": 1.0}, "ema=1.0 must be at least 0 and below 1"),
        ({"beta2": -0.1}, "beta2=-0.1 must be at least 0 and below 1"),
        ({"learning_rate": -1e-3}, "learning_rate=-0.001 must be 0 or more"),
        ({"learning_rate": float("nan")}, "learning_rate=nan must be 0 or more"),
        ({"ema": float("nan")}, "ema=nan must be at least 0 and below 1"),
    ],
)
def test_a_value_out_of_range_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainSettings(**values)


@given(st.integers())
def test_a_size_is_positive(value: int) -> None:
    if value >= 1:
        check_positive(Outer(width=value), "width")
    else:
        with pytest.raises(ConfigError, match=f"width={value} must be at least 1"):
            check_positive(Outer(width=value), "width")


@given(st.floats(allow_nan=True))
def test_a_share_is_at_least_0_and_below_1(value: float) -> None:
    if 0 <= value < 1:
        check_fraction(Outer(rate=value), "rate")
    else:
        with pytest.raises(ConfigError, match=r"rate=.* must be at least 0 and below 1"):
            check_fraction(Outer(rate=value), "rate")
