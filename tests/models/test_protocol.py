"""What a model offers is found by every Python: since 3.12 instance checks look past the modules
inside a module.
"""

import inspect

import pytest
import torch

from saccade.models import protocol
from saccade.train.recipes import RECIPES
from tests.marks import one_fast_of_each

PROTOCOLS = [
    one
    for one in vars(protocol).values()
    if getattr(one, "_is_protocol", False) and one.__module__ == protocol.__name__
]

every_family = pytest.mark.parametrize(
    "name", one_fast_of_each({name: type(one.model) for name, one in RECIPES.items()})
)


@every_family
def test_what_a_model_offers_is_seen_without_asking_it(name: str) -> None:
    with torch.device("meta"):
        model = RECIPES[name].model.build()
    for offered in PROTOCOLS:
        if isinstance(model, offered):
            for member in _members(offered):
                inspect.getattr_static(model, member)


def _members(offered: type) -> set[str]:
    return {
        name
        for one in offered.__mro__
        if one.__module__ == protocol.__name__
        for name in vars(one)
        if not name.startswith("_")
    }
