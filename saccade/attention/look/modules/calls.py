"""What a running module hands to torch, caught on its way.

While a module runs, torch tells us of each function it calls. `scaled_dot_product_attention` is
let through unchanged, and its queries, keys and mask make a `View`: so the output is that of the
kernel itself, whatever the model has done to get there. A module that never calls it makes its
weights by a softmax, and these are taken instead. Both are the weights before dropout.
"""

from collections.abc import Callable
from dataclasses import replace
from types import FunctionType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.overrides import _get_current_function_mode_stack as modes  # pyright: ignore[reportPrivateUsage]

from saccade.attention.kernels.sdpa import sdpa_with_lse
from saccade.attention.look.modules.names import calls_itself_attention
from saccade.attention.look.modules.patterns import shortest
from saccade.attention.look.view import View

Seen = View | Float[Tensor, "B N T S"]
SOFTMAX = {F.softmax, torch.softmax, Tensor.softmax}
PRODUCT = {
    torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm, torch.baddbmm,
    torch.einsum,
}  # fmt: skip
HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "num_key_value_heads")


class Listener(TorchFunctionMode):
    """Lets every function through, and tells the module that runs of it."""

    def __init__(self, running: Callable[[], "ModuleRun | None"]) -> None:
        super().__init__()
        self.running = running

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():  # a kernel that compiles itself, as FlexAttention does
            return func(*args, **kwargs)
        run = self.running()
        if run is None:
            return func(*args, **kwargs)
        if func is F.multi_head_attention_forward:
            with self:
                return _opened(func)(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            call = FusedCall(*args, **kwargs)
            others = any(mode is not self for mode in modes())
            output, lse = (func(*args, **kwargs), None) if others else call.run()
            run.fused(call, lse)
            return output
        output = func(*args, **kwargs)
        if func in PRODUCT:
            run.product([one for one in args if isinstance(one, Tensor)], output)
        elif func in SOFTMAX:
            run.softmax(output, kwargs["dim"] if "dim" in kwargs else args[1])
        return output


def _opened(function: Any) -> Any:
    """The same code, told that nobody stands in for it: then what it calls is seen one by one."""
    scope = {**vars(F), "has_torch_function": lambda _: False}  # pyright: ignore[reportUnknownLambdaType]
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__)


class Softmax:
    """Weights that may be attention's: they are if matrix products make the scores and read it."""

    def __init__(self, weights: Tensor, *, scored: bool) -> None:
        self.weights, self.scored, self.read = weights, scored, False


class ModuleRun:
    """One run of a module: `tell` is told of what it looked at.

    A module that calls itself attention is trusted with any softmax of the right shape; another's
    must lie between two matrix products. With `gradients` these are the very weights that are read
    by.
    """

    def __init__(
        self,
        module: nn.Module,
        tell: Callable[[Callable[[], Seen]], None],
        *,
        gradients: bool = False,
    ) -> None:
        self.module, self.tell, self.gradients = module, tell, gradients
        self.attends = calls_itself_attention(module)
        self.holds = self.attends or learns(module)
        self.fuses = False
        self.softmaxes: list[Softmax] = []
        self.scores: set[tuple[int, ...]] = set()
        self.keys = 0

    def fused(self, call: "FusedCall", lse: Tensor | None) -> None:
        """The fused kernel was called; nested tensors have no (B, N, T, S)."""
        if not call.query.is_nested:
            self.fuses = True
            self.tell(lambda: call.view(self.module, lse))

    def product(self, factors: list[Tensor], output: Tensor) -> None:
        """Scores may have been made, or values read."""
        for one in self.softmaxes:
            one.read |= any(_size(factor) == _size(one.weights) for factor in factors)
        if not self.softmaxes:
            self.keys = output.shape[-1]
        self.scores.add(_size(output))

    def softmax(self, weights: Tensor, dim: int | None) -> None:
        """Weights may have been made."""
        scored = _size(weights) in self.scores
        if dim in (-1, weights.dim() - 1) and (self.attends or scored):
            kept = weights if self.gradients else weights.detach()
            self.softmaxes.append(Softmax(kept, scored=scored))

    def finish(self) -> None:
        """Hand over the weights of a module that has not called the fused function.

        It may run one softmax for each image or stretch of speech. Several between different
        numbers of queries and keys are the factors of something else (Nyströmformer's).
        """
        found = [by_heads(one, self.module, self.keys) for one in self.softmaxes]
        seen = [weights for weights in found if weights is not None]
        sides = {tuple(weights.shape[2:]) for weights in seen}
        if self.fuses or (len(sides) > 1 and any(queries != keys for queries, keys in sides)):
            return
        for weights in seen:
            self.tell(lambda weights=weights: weights)


def learns(module: nn.Module) -> bool:
    """Whether it has parameters; asked of every module that runs, so the first found is enough."""
    own = module._parameters.values()  # pyright: ignore[reportPrivateUsage]
    return any(p is not None for p in own) or any(learns(part) for part in module.children())


def _size(tensor: Tensor) -> tuple[int, ...]:
    """What stays when the dimensions before the last two are folded."""
    return tensor.numel(), *tensor.shape[-2:]


class FusedCall(NamedTuple):
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
        plain = plain and not q.is_nested
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
            if not bool(((mask == 0) | (mask == -torch.inf)).all()):
                return replace(asked, bias=mask)
            mask = mask == 0
        said = shortest(self.attn_mask, mask)
        return replace(asked, causal=said.causal, reach=said.reach, mask=said.mask)


def as_computed(tensor: Tensor) -> Tensor:
    """In the precision of the kernel: autocast would have lowered it there."""
    device = tensor.device.type
    if torch.is_autocast_enabled(device) and tensor.dtype == torch.float32:
        tensor = tensor.to(torch.get_autocast_dtype(device))
    return tensor.detach()


def four(tensor: Tensor, module: nn.Module) -> Float[Tensor, "B N T K"]:
    """(B, N, T, K) of whatever stands before the last two dimensions."""
    if tensor.dim() == 3:
        many = heads(module) or 1
        return tensor.unflatten(0, (-1, many if len(tensor) % many == 0 else 1))
    return broadcast(tensor)


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


def by_heads(one: Softmax, module: nn.Module, keys: int) -> Float[Tensor, "B N T S"] | None:
    """Softmax's result as weights by head; None where it is not that of weights.

    A learnt sink may have its own column at the end, beyond the keys that were scored.
    """
    weights, many, sure = one.weights, heads(module), one.scored and one.read
    if not (sure or calls_itself_attention(module)):
        return None
    if weights.dim() == 3 and many and weights.shape[0] % many == 0:
        weights = weights.unflatten(0, (-1, many))
    elif weights.dim() in (2, 3) and sure:
        weights = weights.unsqueeze(-3)  # one head
        weights = weights if weights.dim() == 4 else weights.unsqueeze(0)
    if weights.dim() != 4 or not (sure or many in (None, weights.shape[1])):
        return None
    sinks = any("sink" in name for name, _ in module.named_parameters(recurse=False))
    return weights[..., :-1] if sinks and weights.shape[-1] == keys + 1 else weights
