"""Looking into any Hugging Face model, while it runs as it always does.

Nothing of transformers is imported or replaced: each module that calls itself attention is
accompanied while it runs (`huggingface_calls`). A model that runs torch's fused attention, or its
own in plain torch, is left as it is, so what it computes is the same to the last bit; one that was
loaded with another kernel (FlashAttention, flex) runs torch's fused one inside the block.
"""

import threading
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.look.huggingface_calls import Call, Seen, aside, forget
from saccade.attention.look.huggingface_names import (
    attending,
    axes,
    fitted,
    innermost,
    names,
    pretrained,
)
from saccade.attention.look.view import Watcher
from saccade.errors import ConfigError

SiteAxes = tuple[Axis, Axis]
OURS = ("eager", "sdpa", None)  # None: a module built alone, which runs its eager path
SETTING = "_attn_implementation_internal"


def is_hugging_face(model: nn.Module) -> bool:
    """Whether a model of transformers is in here, be it wrapped by something else."""
    return any(pretrained(module) for module in model.modules())


@contextmanager
def watching(
    model: nn.Module, watcher_of: Callable[[str], Watcher | None]
) -> Generator[dict[str, SiteAxes], None, None]:
    """Tell `watcher_of(name)` of each look of a site, call by call, while the block runs.

    Yields what lies along the rows and columns of each site; an entry grows more exact, or is
    added, as calls come. Inside the block nothing else about the model may be changed. Whatever is
    attached is taken off again, also when the block fails. A module that runs several times in one
    forward pass (ALBERT's) is a site each time: `encoder.0.self`, `encoder.0~2.self` and so on.
    """
    _refuse(model)
    session = _Session(model, watcher_of)
    with ExitStack() as undo:
        undo.callback(forget)
        undo.enter_context(_known_kernels(model))
        undo.enter_context(_uncompiled_generation(model))
        session.attach(undo)
        yield session.axes
    session.check()


class _Session:
    """One block of watching."""

    def __init__(self, model: nn.Module, watcher_of: Callable[[str], Watcher | None]) -> None:
        self.model, self.watcher_of = model, watcher_of
        self.modules = attending(model)
        self.names = names(model)
        self.paths = innermost([*self.names])
        self.axes: dict[str, SiteAxes] = {
            self.names[path]: axes(model, path, self.names[path]) for path in self.paths
        }
        self.watchers = {name: watcher_of(name) for name in self.axes}
        if not any(self.watchers.values()):
            found = ", ".join(self.axes)
            raise ConfigError(f"no site of {type(model).__name__} is asked for; there are: {found}")
        self.ran: set[str] = set()  # paths of attention that ran, and "*" for the model itself
        self.shown: set[str] = set()
        self.running = _Running()

    def attach(self, undo: ExitStack) -> None:
        """Accompany every attention module, and count the passes through the model."""
        for path, module in self.modules.items():
            own = module.__dict__.get("forward")
            if isinstance(module, nn.MultiheadAttention):
                accompanied = self._beside(path, module, module.forward)
            elif any(isinstance(inner, nn.MultiheadAttention) for inner in module.modules()):
                continue
            else:
                accompanied = self._within(path, module, module.forward)
            undo.callback(_put_back, module, own)
            module.forward = accompanied
        passes = [module for module in self.model.modules() if pretrained(module)]
        for module in passes:
            undo.callback(module.register_forward_pre_hook(self._enter).remove)
            undo.callback(module.register_forward_hook(self._leave, always_call=True).remove)

    def check(self) -> None:
        """A model that ran must have been seen, and what was not seen is told."""
        unseen = [self.names[p] for p in self.paths if p in self.ran and p not in self.shown]
        kind = type(self.model).__name__
        if self.ran and not self.shown:
            raise ConfigError(
                f"{kind} ran, but its attention passed neither through "
                "torch's scaled_dot_product_attention nor through a softmax over "
                "(batch, heads, queries, keys): such sparse, linear or foreign attention has no "
                "weights to show; look at a model with full attention"
            )
        if unseen:
            message = f"{kind} has attention without weights to show: {', '.join(unseen)}"
            warnings.warn(message, stacklevel=4)

    def _within(self, path: str, module: nn.Module, forward: Callable[..., Any]) -> Any:
        """A forward that runs as always, with torch telling us what it calls."""

        def accompanied(*args: Any, **kwargs: Any) -> Any:
            stack = self.running.stack
            name = self._called(path)
            call = Call(module, lambda seen: self._tell(name, path, module, seen), stack)
            stack.append(call)
            try:
                with call:
                    output = forward(*args, **kwargs)
            finally:
                stack.pop()
            call.finish()
            return output

        return accompanied

    def _beside(self, path: str, module: nn.MultiheadAttention, forward: Callable[..., Any]) -> Any:
        """What torch itself made takes another path when accompanied: it is asked a second time."""

        def accompanied(*args: Any, **kwargs: Any) -> Any:
            output = forward(*args, **kwargs)
            asked = {**kwargs, "need_weights": True, "average_attn_weights": False}

            def weights() -> Tensor:
                dropout, module.dropout = module.dropout, 0.0
                try:
                    seen = forward(*args[:3], **_named(args[3:]), **asked)[1]
                finally:
                    module.dropout = dropout
                return seen if seen.dim() == 4 else seen.unsqueeze(0)

            self._tell(self._called(path), path, module, weights)
            return output

        return accompanied

    def _called(self, path: str) -> str:
        self.ran.add(path)
        times = self.running.times[path] = self.running.times.get(path, 0) + 1
        stack, _, kind = self.names[path].rpartition(".")
        return self.names[path] if times == 1 else f"{stack}~{times}.{kind}"

    def _tell(self, name: str, path: str, module: nn.Module, seen: Callable[[], Seen]) -> None:
        self.shown.add(path)
        if name not in self.watchers:
            self.watchers[name] = self.watcher_of(name)
        watcher = self.watchers[name]
        if watcher is None:
            return
        with aside(module):
            what = seen()
            watcher(what)
        _, _, queries, keys = what.shape
        known = self.axes.get(name) or axes(self.model, path, self.names[path])
        self.axes[name] = (fitted(known[0], queries), fitted(known[1], keys))

    def _enter(self, module: nn.Module, args: Any) -> None:
        self.ran.add("*")
        forget()  # a mask may be written anew between passes
        if not self.running.depth:
            self.running.times.clear()
        self.running.depth += 1

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        self.running.depth -= 1


class _Running(threading.local):
    """Where one thread is: passes it is inside of, runs of each module in this pass, calls open."""

    def __init__(self) -> None:
        self.depth = 0
        self.times: dict[str, int] = {}
        self.stack: list[Call] = []


def _named(rest: tuple[Any, ...]) -> dict[str, Any]:
    """What was given to `nn.MultiheadAttention` by place, by name."""
    order = ("key_padding_mask", "need_weights", "attn_mask", "average_attn_weights", "is_causal")
    given = dict(zip(order, rest))
    return {name: value for name, value in given.items() if "weights" not in name}


def _put_back(module: nn.Module, own: Any) -> None:
    del module.__dict__["forward"]
    if own is not None:
        module.forward = own


def _refuse(model: nn.Module) -> None:
    """What can be told before the model runs."""
    kind = type(model).__name__
    compiled = [
        type(module).__name__
        for module in model.modules()
        if type(module).__name__ == "OptimizedModule"
        or getattr(module, "_compiled_call_impl", None)
    ]
    if compiled:
        raise ConfigError(
            f"{kind} is compiled, and compiled code cannot be looked into; give the model as it "
            "was before torch.compile (`model._orig_mod`, or do not call `model.compile()`)"
        )
    if not attending(model):
        raise ConfigError(
            f"{kind} has no attention to look at: none of its modules calls itself attention"
        )


@contextmanager
def _known_kernels(model: nn.Module) -> Generator[None, None, None]:
    """Let what runs FlashAttention, flex or a kernel of the hub run torch's fused attention."""
    changed = [(config, getattr(config, SETTING)) for config in _configs(model)]
    changed = [(config, kernel) for config, kernel in changed if kernel not in OURS]
    try:
        for config, _ in changed:
            setattr(config, SETTING, "sdpa" if _fuses(model, config) else "eager")
        yield
    finally:
        for config, kernel in changed:
            setattr(config, SETTING, kernel)


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


def _fuses(model: nn.Module, config: Any) -> bool:
    """Whether all that is built from a config can run torch's fused attention."""
    owners = [m for m in model.modules() if pretrained(m) and m.config is config]
    return all(getattr(owner, "_supports_sdpa", False) for owner in owners)


@contextmanager
def _uncompiled_generation(model: nn.Module) -> Generator[None, None, None]:
    """`generate` compiles a model with a static cache on its own; not while it is looked into."""
    settings: list[Any] = [
        m.generation_config for m in model.modules() if hasattr(m, "generation_config")
    ]
    settings = [s for s in settings if hasattr(s, "disable_compile")]
    before = [s.disable_compile for s in settings]
    try:
        for one in settings:
            one.disable_compile = True
        yield
    finally:
        for one, value in zip(settings, before):
            one.disable_compile = value
