"""Recipes survive TOML and JSON; a broken one is named."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from saccade.errors import ConfigError
from saccade.tasks.base import OtherRun, Preparation
from saccade.train.recipe import (
    from_table,
    load_recipe,
    save_recipe,
    to_table,
)
from saccade.train.recipes import RECIPES, recipe
from saccade.train.storage.folder import changes
from tests.gpu.corpora import hurried
from tests.marks import one_fast
from tests.train.small import small_recipe


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_survives_toml_and_json(name: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(save_recipe(RECIPES[name]), encoding="utf-8")
    assert load_recipe(path) == RECIPES[name] == recipe(str(path))
    table = json.loads(json.dumps(to_table(RECIPES[name])))
    assert from_table(table, where="here") == RECIPES[name]
    assert list(changes(RECIPES[name], from_table(table, where="here"))) == []


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_takes_the_sizes_that_its_data_have(name: str) -> None:
    chosen = RECIPES[name]
    sized = replace(chosen, model=chosen.task.smallest(chosen.model))
    assert sized != chosen
    assert list(changes(RECIPES[name], sized)) == []


# The last recipe of each kind of work with each kind of model.
KINDS = {(type(one.task), type(one.model)): name for name, one in RECIPES.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS.values())
def test_a_run_can_go_on_by_the_recipe_that_began_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    for module in ("captioning", "detection", "joint", "reconstruction"):
        monkeypatch.setattr(f"saccade.tasks.{module}.data.HELD_BACK", 8)
    chosen = hurried(name, tmp_path / "data", steps=3)
    for stage in chosen.stages:
        chosen = replace(chosen, task=stage.named(chosen.task, tmp_path / stage.option))

    def opened(folder: str, option: str) -> OtherRun:
        (stage,) = (one for one in chosen.stages if option == f"--{one.option}")
        return OtherRun(Path(folder), stage.recipe.task, stage.recipe.model.build())

    how = Preparation(budget=chosen.train.batch_tokens, seed=0, open_run=opened)
    begun = replace(chosen, model=chosen.task.prepare(how).fit(chosen.model))
    assert list(changes(begun, chosen)) == []


@pytest.mark.parametrize(
    "name",
    one_fast(["rnn-lm", "gpt", "transformer", "rnn-seq2seq", "show-attend-tell", "equalizer"]),
)
def test_a_recipe_knows_what_the_built_in_data_make_of_its_model(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.tasks.captioning.data.HELD_BACK", 4)
    chosen = RECIPES[name]
    fewer = {"pairs": 1000, "scenes": 150}  # of lingua these fill a vocabulary, as more do
    some: Any = {key: few for key, few in fewer.items() if key in vars(chosen.task)}
    task = replace(chosen.task, **some).prepare(Preparation(budget=1024, seed=0))
    fitted = vars(task.fit(chosen.model))
    known = chosen.task.fitted_sizes()
    assert known == {size: fitted[size] for size in chosen.task.fitted}
    own = replace(chosen.task, data="my-corpus").fitted_sizes()
    assert own == {size: vars(chosen.task)[size] for size in chosen.task.fitted}


def test_an_unknown_recipe_is_told_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no recipe 'lstm'; there are: rnn-lm, .*\.toml"):
        recipe("lstm")
    for typo, meant in (("Transfromer", "transformer"), ("vti", "vit")):
        near = (
            rf"^no recipe '{typo}'; perhaps you meant {meant}(?: or \S+)?; `saccade list` has all"
        )
        with pytest.raises(ConfigError, match=near):
            recipe(typo)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"model = 3\ntask = 3\ntrain = 3", "model.family=None must be one of: rnn-language"),
        (b"[model]\n[train]", "must have the tables model, task and train"),
        (b"a = = 3", "is not TOML"),
        (b"\xff\xfe", "is not UTF-8 .*; save it as UTF-8"),
        (b"steps = 9\n[model]\n[task]\n[train]", "steps stands in none of the tables model, task"),
        (b"a = " + b"[" * 100_000, "is not TOML"),
    ],
)
def test_a_broken_file_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as raised:
        recipe(str(path))
    assert str(path) in str(raised.value)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(save_recipe(RECIPES["gpt"]), encoding="utf-8-sig")
    assert recipe(str(path)) == RECIPES["gpt"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the recipe .*none\.toml: No such file"):
        recipe(str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("model", {"family": "eye"}, "here: model.family='eye' must be one of"),
        ("model", {"family": []}, r"here: model.family=\[\] must be one of"),
        ("model", {"family": {}}, "here: model.family={} must be one of"),
        ("model", {"width": 15}, "width=15 does not divide into heads=2"),
        ("task", {"kind": None}, "here: task.kind=None must be one of: translation, language"),
        ("task", {"lingua": {"x": 1}}, "here: task.lingua.x is not a setting"),
        ("train", {"steps": "9"}, "here: train.steps='9' must be int, not str"),
    ],
)
def test_a_wrong_value_is_named_by_its_place(
    part: str, values: dict[str, Any], message: str
) -> None:
    table = to_table(small_recipe("corpus"))
    with pytest.raises(ConfigError, match=message):
        from_table({**table, part: {**table[part], **values}}, where="here")
