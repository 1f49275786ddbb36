"""What an attention module hands to torch, caught on its way.

While a module runs, torch tells us of each function it calls. `scaled_dot_product_attention` is
let through unchanged, and its queries, keys and mask make a `View`: so the output is that of the
kernel itself, whatever the model has done to get there. A module that never calls it (the model
has no fused path, or was loaded with `attn_implementation="eager"`) makes its weights by a softmax,
and these are taken instead. Both are the weights before dropout.
"""

import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.overrides import _get_current_function_mode_stack as modes  # pyright: ignore[reportPrivateUsage]

from saccade.attention import masks
from saccade.attention.kernels.sdpa import sdpa_with_lse
from saccade.attention.look.view import View

Seen = View | Float[Tensor, "B N T S"]
SOFTMAX = (F.softmax, torch.softmax, Tensor.softmax)
PRODUCT = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm)
HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "num_key_value_heads")


class Call(TorchFunctionMode):
    """One run of a module: `tell` is told of what it looked at, `around` are the runs it is in.

    Attention often sits inside attention (`BertAttention` holds `BertSelfAttention`); only the
    innermost that runs is meant.
    """

    def __init__(
        self, module: nn.Module, tell: Callable[[Callable[[], Seen]], None], around: list["Call"]
    ) -> None:
        super().__init__()
        self.module, self.tell, self.around = module, tell, around
        self.fused = False
        self.softmaxes: list[Tensor] = []
        self.scored = 0

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        innermost = self.around[-1] is self
        if func is F.scaled_dot_product_attention and innermost:
            self.fused = True
            asked = Asked(*args, **kwargs)
            others = [mode for mode in modes() if mode not in self.around]
            output, lse = (func(*args, **kwargs), None) if others else asked.run()
            self.tell(lambda: asked.view(self.module, lse))
            return output
        output = func(*args, **kwargs)
        if func in PRODUCT and not self.softmaxes:
            self.scored = output.shape[-1]
        elif func in SOFTMAX and innermost:
            self.softmaxes.append(output.detach())
        return output

    def finish(self) -> None:
        """Hand over the weights of a module that has not called the fused function.

        It may run one softmax for each picture or stretch of speech. Several between different
        numbers of queries and keys are the factors of something else (Nyströmformer's).
        """
        found = [by_heads(weights, self.module, self.scored) for weights in self.softmaxes]
        seen = [weights for weights in found if weights is not None]
        sides = {tuple(weights.shape[2:]) for weights in seen}
        if self.fused or (len(sides) > 1 and any(queries != keys for queries, keys in sides)):
            return
        for weights in seen:
            self.tell(lambda weights=weights: weights)


class Asked(NamedTuple):
    """The arguments of `scaled_dot_product_attention`, in its order."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    def run(self) -> tuple[Tensor, Tensor | None]:
        """The very call; beside it the log-sum-exp where the kernel gives that for nothing."""
        q, k, v, mask = self[:4]
        given = [q, k, v] if mask is None else [q, k, v, mask]
        plain = all(type(t) is Tensor and t.dim() == 4 and not t.requires_grad for t in given)
        if plain and not self.dropout_p and not torch.is_autocast_enabled(q.device.type):
            return sdpa_with_lse(
                q, k, v, mask=mask, causal=self.is_causal, scale=self.scale, grouped=self.enable_gqa
            )
        output = F.scaled_dot_product_attention(
            *self[:6], scale=self.scale, enable_gqa=self.enable_gqa
        )
        return output, None

    def view(self, module: nn.Module, lse: Tensor | None) -> View:
        """What the kernel was asked, with the mask said as shortly as can be."""
        q, k = (four(as_computed(t), module) for t in (self.query, self.key))
        queries, keys = q.shape[2], k.shape[2]
        scale = self.query.shape[-1] ** -0.5 if self.scale is None else float(self.scale)
        asked = View(q=q, k=k, scale=scale, lse=lse)
        mask = None if self.attn_mask is None else broadcast(self.attn_mask.detach())
        if self.is_causal and queries != keys:  # torch counts from the first key, we to the last
            mask = q.new_ones(1, 1, queries, keys, dtype=torch.bool).tril()
        if mask is None:
            decoding = queries == 1 and bool(getattr(module, "is_causal", False))
            return replace(asked, causal=self.is_causal or decoding)
        if mask.dtype != torch.bool:
            return replace(asked, bias=mask)
        said = shortest(self.attn_mask, mask)
        return replace(asked, causal=said.causal, reach=said.reach, mask=said.mask)


class Pattern(NamedTuple):
    """A mask in the words of a View."""

    causal: bool = False
    reach: int | None = None
    mask: Bool[Tensor, "#B #N #T #S"] | None = None


_last: tuple[weakref.ref[Tensor], Pattern] | None = None  # every layer is given the same mask


def shortest(given: Tensor | None, mask: Bool[Tensor, "#B #N #T #S"]) -> Pattern:
    """The same mask, but said by `causal`, `reach` and the keys alone where these say it all."""
    global _last  # noqa: PLW0603
    known = _last
    if known is None or known[0]() is not given or given is None:
        known = (weakref.ref(mask if given is None else given), pattern(mask))
        _last = known
    return known[1]


def forget() -> None:
    """Let go of the last mask."""
    global _last  # noqa: PLW0603
    _last = None


def pattern(mask: Bool[Tensor, "#B #N #T #S"]) -> Pattern:
    """Full, causal or windowed, perhaps with keys that are hidden from all; else the mask."""
    queries, keys = mask.shape[-2:]
    seen = mask.any(dim=-2, keepdim=True)  # (B, N, 1, S)
    hidden = None if bool(seen.all()) else seen
    if torch.equal(mask, seen.expand_as(mask)):
        return Pattern(mask=hidden)
    most = int(mask.sum(dim=-1).max())
    causal = masks.causal(queries, keys, device=mask.device) & seen
    if torch.equal(mask, causal.expand_as(mask)):
        return Pattern(causal=True, mask=hidden)
    for behind, reach in ((True, most - 1), (False, (most - 1) // 2)):
        near = masks.window(queries, keys, reach=max(reach, 0), device=mask.device)
        if torch.equal(mask, (near & (causal if behind else seen)).expand_as(mask)):
            return Pattern(causal=behind, reach=reach, mask=hidden)
    return Pattern(mask=mask)


def as_computed(tensor: Tensor) -> Tensor:
    """In the precision of the kernel: autocast would have lowered it there."""
    device = tensor.device.type
    if torch.is_autocast_enabled(device) and tensor.dtype == torch.float32:
        tensor = tensor.to(torch.get_autocast_dtype(device))
    return tensor.detach()


def four(tensor: Tensor, module: nn.Module) -> Float[Tensor, "B N T K"]:
    """(B, N, T, K) of whatever stands before the last two dimensions."""
    if tensor.dim() == 3:
        return tensor.unflatten(0, (-1, heads(module) or 1))
    return tensor if tensor.dim() == 4 else tensor.flatten(0, -4)


def broadcast(mask: Tensor) -> Tensor:
    """Four dimensions, the missing ones in front."""
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    return mask if mask.dim() == 4 else mask.flatten(0, -4)


def heads(module: nn.Module) -> int | None:
    """How many heads a module says it has."""
    places = [module, getattr(module, "config", None)]
    found = (getattr(place, name, None) for place in places for name in HEADS)
    return next((value for value in found if isinstance(value, int)), None)


def by_heads(weights: Tensor, module: nn.Module, scored: int) -> Float[Tensor, "B N T S"] | None:
    """Softmax's result as weights by head; None where its shape is not that of weights.

    A learnt sink may have its own column at the end, beyond the keys that were scored.
    """
    many = heads(module)
    if weights.dim() == 3 and many and weights.shape[0] % many == 0:
        weights = weights.unflatten(0, (-1, many))
    if weights.dim() != 4 or (many is not None and weights.shape[1] != many):
        return None
    sinks = any("sink" in name for name, _ in module.named_parameters(recurse=False))
    return weights[..., :-1] if sinks and weights.shape[-1] == scored + 1 else weights


@contextmanager
def aside(module: nn.Module) -> Generator[None, None, None]:
    """Outside the graph and in full precision."""
    device = next((p.device.type for p in module.parameters()), "cpu")
    with torch.no_grad(), torch.autocast(device, enabled=False):
        yield
