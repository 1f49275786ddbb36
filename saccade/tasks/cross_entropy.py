"""The output layer and its loss together, without ever holding the scores of all words.

The scores of some rows are computed, turned into their own gradient in place, used, and dropped.
So the gradients are ready when the loss is, and nothing is computed twice.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.output import OutputLayer

SCORES = {"cuda": 1 << 28, "cpu": 1 << 21}  # held at once; few enough for the CPU's cache
IGNORED = -100  # a label that counts nothing, as torch's own loss has it; no token's number
ALIGNED = 64  # words: matrices on a GPU are multiplied slowly when their rows begin at odd places


def summed_cross_entropy(
    features: Float[Tensor, "tokens D"],
    layer: OutputLayer,
    labels: Int[Tensor, " tokens"],
    *,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """−Σ log p(label), a share ε of each label spread over the vocabulary.

        z = W x + b        loss = log Σᵥ exp zᵥ − (1 − ε) z_label − ε mean(z)

    Sums and exponentials are in float32 or better. Labels that are IGNORED count nothing.
    """
    kind = features.device.type
    autocast = torch.is_autocast_enabled(kind)
    precision = torch.get_autocast_dtype(kind) if autocast else features.dtype
    learns = any(part is not None and part.requires_grad for part in (features, *layer))
    wanted = torch.is_grad_enabled() and learns
    found = _cross_entropy(features, *layer, labels, smoothing, precision, wanted)
    return found[0]


@torch.library.custom_op("saccade::cross_entropy", mutates_args=())
def _cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    smoothing: float,
    precision: torch.dtype,
    gradients: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss, and its gradients to features, weight and bias."""
    device, words = features.device, len(weight)
    extra = -words % ALIGNED if device.type == "cuda" else 0
    like = F.pad(weight.to(precision), (0, 0, 0, extra))
    shift = None if bias is None else F.pad(bias.to(precision), (0, extra))
    exact = torch.promote_types(precision, torch.float32)
    total = torch.zeros((), dtype=exact, device=device)
    by_feature, by_weight, by_bias = _empty_gradients(features, weight, bias, gradients)
    rows = max(1, SCORES.get(device.type, SCORES["cpu"]) // words)
    for start in range(0, len(features), rows):
        part = slice(start, start + rows)
        x = features[part].to(precision)
        with torch.autocast(device.type, enabled=False):
            scores = F.linear(x, like, shift)
            total += score_loss(scores, labels[part], words=words, smoothing=smoothing)
            if gradients:  # `scores` now hold their own gradient
                by_feature[part] = scores @ like
                _add_product(by_weight, scores[:, :words].T, x)
                if bias is not None:
                    by_bias += scores[:, :words].sum(dim=0, dtype=exact)
    return total, by_feature, by_weight, by_bias


def score_loss(
    scores: Float[Tensor, "rows V"],
    labels: Int[Tensor, " rows"],
    *,
    words: int,
    smoothing: float,
) -> Float[Tensor, ""]:
    """The summed loss of the first so many words' scores, which become its gradient, in place.

    Scores beyond these only fill the rows up, and their gradient is zero.
    """
    if scores.device.type == "cuda":
        from saccade.tasks.cross_entropy_kernel import score_loss_by_kernel

        return score_loss_by_kernel(scores, labels, words=words, smoothing=smoothing)
    assert words == scores.shape[1]
    counts = (labels != IGNORED)[:, None]
    exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
    lse = exact.logsumexp(dim=1, keepdim=True)
    label = labels[:, None].clamp(min=0)
    loss = lse - (1 - smoothing) * exact.gather(1, label)
    if smoothing:
        loss -= smoothing * exact.mean(dim=1, keepdim=True)
    total = (loss * counts).sum()
    gradient = exact.sub_(lse).exp_()  # softmax, in the scores' own memory unless they are halves
    if smoothing:
        gradient -= smoothing / scores.shape[1]
    gradient.scatter_add_(1, label, gradient.new_full(label.shape, smoothing - 1))
    if not counts.all():
        gradient *= counts
    if gradient.dtype != scores.dtype:
        scores.copy_(gradient)
    return total


def _add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """Total += a b, summed in the precision of the total."""
    if a.dtype == total.dtype:
        total.addmm_(a, b)
    elif a.device.type == "cuda":
        total += torch.mm(a, b, out_dtype=total.dtype)
    else:
        total += a @ b


def _empty_gradients(
    features: Tensor, weight: Tensor, bias: Tensor | None, wanted: bool
) -> tuple[Tensor, Tensor, Tensor]:
    if not wanted:
        return features.new_empty(0), features.new_empty(0), features.new_empty(0)
    by_bias = weight.new_zeros(0) if bias is None else torch.zeros_like(bias)
    return torch.empty_like(features), torch.zeros_like(weight), by_bias


@_cross_entropy.register_fake
def _(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    smoothing: float,
    precision: torch.dtype,
    gradients: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    total = features.new_empty((), dtype=torch.promote_types(precision, torch.float32))
    return (total, *_empty_gradients(features, weight, bias, gradients))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*output[1:])
    ctx.has_bias = inputs[2] is not None
    ctx.set_materialize_grads(False)


def _backpropagate(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    by_feature, by_weight, by_bias = (
        gradient * grad.to(gradient.dtype) for gradient in ctx.saved_tensors
    )
    return by_feature, by_weight, by_bias if ctx.has_bias else None, *[None] * 4


_cross_entropy.register_autograd(_backpropagate, setup_context=_remember)
