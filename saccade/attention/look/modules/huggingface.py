"""What is particular to models of transformers: kernels by name, and generation that compiles.

Nothing of transformers is imported. A model that was loaded with another kernel (FlashAttention,
flex) runs torch's fused one while it is watched, or plain formulas where gradients are wanted.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from saccade.attention.look.modules.names import pretrained

SEEN = ("eager", "sdpa", None)  # None: a module built alone, which runs its eager path
SETTING = "_attn_implementation_internal"


@contextmanager
def visible_kernels(model: nn.Module, *, gradients: bool = False) -> Generator[None, None, None]:
    """Let what runs FlashAttention, flex or a kernel of the hub run torch's fused attention.

    Only the plain formula computes weights, so with `gradients` all run that one. `generate`
    compiles a model with a static cache on its own; not in here.
    """
    changed = [
        (config, SETTING, "eager" if gradients else _kernel(model, config))
        for config in _configs(model)
    ]
    generation: list[Any] = [getattr(m, "generation_config", None) for m in model.modules()]
    changed += [(c, "disable_compile", True) for c in generation if hasattr(c, "disable_compile")]
    before = [getattr(config, setting) for config, setting, _ in changed]
    try:
        for config, setting, value in changed:
            setattr(config, setting, value)
        yield
    finally:
        for (config, setting, _), value in reversed(list(zip(changed, before))):
            setattr(config, setting, value)


def _configs(model: nn.Module) -> Iterator[Any]:
    """Every config in a model once, those inside of configs too."""
    waiting = [module.config for module in model.modules() if hasattr(module, "config")]
    met: set[int] = set()
    while waiting:
        config = waiting.pop()
        if id(config) in met or not hasattr(config, SETTING):
            continue
        met.add(id(config))
        yield config
        waiting += [getattr(config, name, None) for name in getattr(config, "sub_configs", ())]


def _kernel(model: nn.Module, config: Any) -> str | None:
    """Its own where that is seen, else torch's if all that is built from the config can run it."""
    if getattr(config, SETTING) in SEEN:
        return getattr(config, SETTING)
    owners = [m for m in model.modules() if pretrained(m) and m.config is config]
    fuses = all(getattr(owner, "_supports_sdpa", False) for owner in owners)
    return "sdpa" if fuses else "eager"
