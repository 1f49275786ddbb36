"""Looking into any module, while it runs as it always does.

Nothing is replaced but `forward`, by one that notes which module runs; what a module asks of torch
on the way (`calls`) belongs to the innermost that runs. What the model computes is the same to the
last bit. The fused encoder layers of `torch.nn` show nothing: they run as always, and then a second
time on their slow path, for the look alone.
"""

import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode_stack as modes  # pyright: ignore[reportPrivateUsage]

from saccade.attention.axes import Axis
from saccade.attention.look.modules.calls import Listener, ModuleRun, Seen
from saccade.attention.look.modules.huggingface import visible_kernels
from saccade.attention.look.modules.names import (
    attending,
    axes,
    calls_itself_attention,
    fitted,
    innermost,
    names,
    pretrained,
)
from saccade.attention.look.modules.patterns import forget
from saccade.attention.look.view import Watcher
from saccade.attention.site import Site
from saccade.errors import ConfigError

SiteAxes = tuple[Axis, Axis]
FAST = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
UNSEEN = (
    "calls neither torch's scaled_dot_product_attention nor a softmax over (batch, heads, queries, "
    "keys) that is multiplied with values"
)


@contextmanager
def watching(
    model: nn.Module,
    watcher_of: Callable[[str], Watcher | None],
    *,
    known: dict[str, SiteAxes] | None = None,
    follow: Callable[[str, Seen], None] | None = None,
    begin: Callable[[], None] | None = None,
    gradients: bool = False,
) -> Generator[dict[str, SiteAxes], None, None]:
    """Tell `watcher_of(name)` of each look of a site, call by call, while the block runs.

    Yields what lies along the rows and columns of each site, beside those `known` and watched by
    others; an entry grows more exact, or is added, as calls come. Inside the block nothing else
    about the model may be changed. Whatever is attached is taken off again, also when the block
    fails. A module that runs several times in one forward pass (ALBERT's) is a site each time:
    `encoder.0.self`, `encoder.0~2.self` and so on. `begin` hears of each pass, and `follow` of
    sites that nobody watches. With `gradients` weights are shown that the model reads by, where it
    computes any. Other threads run the model unseen.
    """
    refuse(model)
    session = _Session(model, watcher_of, {} if known is None else known, follow, begin)
    session.gradients = gradients
    with ExitStack() as undo:
        undo.callback(forget)
        undo.enter_context(visible_kernels(model, gradients=gradients))
        session.attach(undo)
        yield session.axes
    session.check()


class _Session:
    """One block of watching."""

    def __init__(
        self,
        model: nn.Module,
        watcher_of: Callable[[str], Watcher | None],
        known: dict[str, SiteAxes],
        follow: Callable[[str, Seen], None] | None,
        begin: Callable[[], None] | None,
    ) -> None:
        self.model, self.watcher_of, self.axes = model, watcher_of, known
        self.follow, self.begin = follow, begin
        self.alone, self.gradients = not known, False
        self.names = names(model)
        self.paths = innermost(attending(model))
        self.watchers = {self.names[path]: watcher_of(self.names[path]) for path in self.paths}
        for path in self.paths:
            self.axes[self.names[path]] = axes(model, path, self.names[path])
        self._refuse_unasked()
        self.ran: set[str] = set()
        self.shown: set[str] = set()
        self.thread, self.elsewhere = threading.get_ident(), False
        self.at = _Running()
        self.listener = Listener(self.at.running)

    def attach(self, undo: ExitStack) -> None:
        """Note when a module runs; what torch's own small ones do belongs to who holds them."""
        for path, module in self.model.named_modules():
            if path and _is_part(module):
                continue
            undo.callback(_put_back, module, module.__dict__.get("forward"))
            noted = _silent if isinstance(module, Site) else partial(self._noted, path, module)
            module.forward = noted(module.forward)

    def check(self) -> None:
        """A model that ran must have been seen, and what was not seen is told."""
        kind = type(self.model).__name__
        if self.elsewhere and not self.ran:
            raise ConfigError(
                f"{kind} ran in another thread than the one that looks, and only this one is seen; "
                "enter `saccade.looking` in the thread that runs the model"
            )
        unseen = [path for path in self.paths if path in self.ran and path not in self.shown]
        if self.ran and not self.shown:
            who = self._described(unseen) if unseen else "none of its modules attends: it"
            raise ConfigError(
                f"{kind} ran, but {who} {UNSEEN}: sparse, linear, flex or foreign attention has no "
                "weights to show; look at a model with full attention"
            )
        if unseen:
            message = f"{kind} has attention without weights to show: {self._described(unseen)}"
            warnings.warn(f"{message} {UNSEEN}", stacklevel=9)
        if self.shown:
            self._refuse_unasked()

    def _described(self, paths: list[str]) -> str:
        modules = {path: type(self.model.get_submodule(path)).__name__ for path in paths}
        return ", ".join(f"{self.names[path]} ({kind})" for path, kind in modules.items())

    def _refuse_unasked(self) -> None:
        if self.alone and self.watchers and not any(self.watchers.values()):
            kind, there = type(self.model).__name__, ", ".join(self.watchers)
            raise ConfigError(f"no site of {kind} is asked for; there are: {there}")

    def _noted(self, path: str, module: nn.Module, forward: Callable[..., Any]) -> Any:
        """A forward that runs as always, with torch telling us what it calls.

        Its signature stays too: by it `generate` finds out whether a model takes position_ids.
        """
        fast = any(type(module).forward is kind.forward for kind in FAST)

        @wraps(forward)
        def noted(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self.thread:
                self.elsewhere = True
                return forward(*args, **kwargs)
            if torch._C._is_torch_function_all_disabled():  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
                return forward(*args, **kwargs)
            if not fast or self.at.aside or not _may_be_fast(module):
                return self._run(path, module, forward, args, kwargs)
            with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
                output = forward(*args, **kwargs)
            self.ran.add(path)
            if any(isinstance(one, Tensor) and one.is_nested for one in args):
                return output  # the slow path cannot read these
            self.at.aside = True
            try:
                self._run(path, module, forward, args, kwargs)
            finally:
                self.at.aside = False
            return output

        return noted

    def _run(
        self,
        path: str,
        module: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        stack, times = self.at.stack, self.at.times
        outermost = not stack
        if outermost:
            forget()  # a mask may be written anew between passes
            times.clear()
            if self.begin is not None:
                self.begin()
        self.ran.add(path)
        times[path] = time = times.get(path, 0) + 1
        tell = partial(self._tell, path, time, module)
        run = ModuleRun(module, tell, gradients=self.gradients)
        stack.append(run)
        try:
            with self.listener if outermost else nullcontext():
                output = forward(*args, **kwargs)
        finally:
            stack.pop()
        run.finish()
        return output

    def _tell(self, path: str, time: int, module: nn.Module, seen: Callable[[], Seen]) -> None:
        self.shown.add(path)
        stack, _, kind = self.names[path].rpartition(".")
        name = self.names[path] if time == 1 else f"{stack}~{time}.{kind}"
        if name not in self.watchers:
            self.watchers[name] = self.watcher_of(name)
        watcher = self.watchers[name] or (self.follow and partial(self.follow, name))
        if watcher is None:
            return
        with aside(module):
            what = seen()
            _, _, queries, keys = what.shape
            known = self.axes.get(name) or axes(self.model, path, self.names[path])
            self.axes[name] = fitted(known, queries, keys)
            watcher(what)


class _Running:
    """Where the model is: modules that run, how often each did in this pass."""

    def __init__(self) -> None:
        self.stack: list[ModuleRun] = []
        self.times: dict[str, int] = {}
        self.aside = False

    def running(self) -> ModuleRun | None:
        """The innermost module; one without parameters works for the one that holds it."""
        for run in reversed(self.stack):
            if run.holds:
                return run
        return self.stack[-1] if self.stack else None


def _silent(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A site of ours shows itself."""

    @wraps(forward)
    def unheard(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
            return forward(*args, **kwargs)

    return unheard


def _is_part(module: nn.Module) -> bool:
    """Whether it is one of torch's own that holds no other: a linear map, a softmax, dropout."""
    return type(module).__module__.startswith("torch.nn.") and not any(
        True for _ in module.children()
    )


def _may_be_fast(module: nn.Module) -> bool:
    """Whether torch would take its fused path: not in training, nor where gradients are wanted."""
    if module.training or not all(isinstance(mode, Listener) for mode in modes()):
        return False
    return not (torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters()))


def _put_back(module: nn.Module, own: Any) -> None:
    del module.__dict__["forward"]
    if own is not None:
        module.forward = own


def refuse(model: nn.Module) -> None:
    """What can be told before the model runs."""
    kind = type(model).__name__
    modules = dict(model.named_modules())
    for path, module in modules.items():
        where = f"its module {path} ({type(module).__name__})" if path else kind
        compiled = module._compiled_call_impl  # pyright: ignore[reportPrivateUsage]
        if type(module).__name__ == "OptimizedModule" or compiled is not None:
            raise ConfigError(
                f"{where} is compiled, and compiled code cannot be looked into; give the model as "
                "it was before torch.compile (`model._orig_mod`, or do not call `model.compile()`)"
            )
        if isinstance(module, torch.jit.ScriptModule):
            raise ConfigError(f"{where} is compiled by torch.jit and cannot be looked into")
    foreign = any(pretrained(m) for m in modules.values())
    parts = all(type(m).__module__.startswith(("torch.nn.", "saccade.")) for m in modules.values())
    if (foreign or parts) and not any(calls_itself_attention(m) for m in modules.values()):
        raise ConfigError(f"{kind} has no attention to look at")


@contextmanager
def aside(module: nn.Module) -> Generator[None, None, None]:
    """Outside the graph, in full precision, and heard by nobody."""
    device = next((p.device.type for p in module.parameters()), "cpu")
    with torch.no_grad(), torch.autocast(device, enabled=False), torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
        yield
