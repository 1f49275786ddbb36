"""An image encoder as classifying runs it: the same function, derived from the model itself.

What training needs is gone: BatchNorm is a part of the convolution before it, weights are in the
precision asked for, channels lie last in memory. A GPU adds and cuts off within the convolution.
"""

import copy
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from saccade.blocks.capture import CapturedCall
from saccade.blocks.inference.affine import Precision
from saccade.models.vision.image_encoder import ImageEncoder
from saccade.models.vision.resnet import ResidualBlock

MOST = 4  # captured shapes, each of which holds memory
AnyModule = TypeVar("AnyModule", bound=nn.Module)


@runtime_checkable
class ReadsImages(Protocol):
    """Images to what is said of them, without gradients, in a precision of its own."""

    dtype: torch.dtype

    def __call__(self, image: Float[Tensor, "B 3 H W"], /) -> Any: ...


@runtime_checkable
class ClassScores(ReadsImages, Protocol):
    """Images to class scores."""

    def __call__(self, image: Float[Tensor, "B 3 H W"], /) -> Float[Tensor, "B classes"]: ...


class EncoderForInference:
    """The scores that an image encoder gives, to rounding or to the precision asked for.

    With `compiled`, torch.compile makes its kernels: slow to start, faster after.
    """

    def __init__(
        self, model: ImageEncoder, precision: Precision, *, compiled: bool = False
    ) -> None:
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        own = copy_for_inference(model, self.dtype, fuse=not compiled)  # else the compiler fuses
        self.model: Callable[[Tensor], Tensor] = torch.compile(own) if compiled else own

    @torch.no_grad()
    def __call__(self, image: Float[Tensor, "B 3 H W"], /) -> Float[Tensor, "B classes"]:
        return self.model(image.to(self.dtype))


def copy_for_inference(module: AnyModule, dtype: torch.dtype, *, fuse: bool = True) -> AnyModule:
    """What computes the same in this precision, with a memory of its own."""
    own = copy.deepcopy(module).eval().requires_grad_(False)
    fold_norms(own)
    if fuse:
        fuse_blocks(own)
    own.to(dtype=dtype, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return own


def fold_norms(module: nn.Module) -> None:
    """Make each BatchNorm that follows a convolution a part of it.

    norm(W ⊛ x) = (γ/σ W) ⊛ x + β − γ μ/σ
    """
    before: nn.Module | None = None
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm2d) and isinstance(before, nn.Conv2d):
            mean, variance = child.running_mean, child.running_var
            assert mean is not None
            assert variance is not None
            before.weight, before.bias = fuse_conv_bn_weights(
                before.weight, before.bias, mean, variance, child.eps, child.weight, child.bias
            )
            setattr(module, name, nn.Identity())
        else:
            fold_norms(child)
        before = child


def fuse_blocks(module: nn.Module) -> None:
    """Put a block that is one call for each convolution in the place of each residual block."""
    for name, child in module.named_children():
        if isinstance(child, ResidualBlock):
            setattr(module, name, FusedBlock(child))
        else:
            fuse_blocks(child)


class FusedBlock(nn.Module):
    """A residual block without norms: what follows a convolution happens where it is computed."""

    def __init__(self, block: ResidualBlock) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(conv for conv, _ in block.convolutions())
        self.downsample = block.downsample

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C2 h w"]:
        *before, last = self.convolutions
        y = x
        for conv in before:
            y = conv_relu(conv, y)
        return conv_relu(last, y, self.downsample(x))


def conv_relu(
    conv: nn.Module, x: Float[Tensor, "B C H W"], beside: Float[Tensor, "B D h w"] | None = None
) -> Float[Tensor, "B D h w"]:
    """relu(W ⊛ x + b + beside), by one kernel of cuDNN where there is one."""
    assert isinstance(conv, nn.Conv2d)
    how: Any = conv.stride, conv.padding, conv.dilation, conv.groups
    if x.is_cuda and x.dtype != torch.float32:
        if beside is None:
            return torch.cudnn_convolution_relu(x, conv.weight, conv.bias, *how)
        return torch.cudnn_convolution_add_relu(x, conv.weight, beside, 1.0, conv.bias, *how)
    y = F.conv2d(x, conv.weight, conv.bias, *how)
    return (y if beside is None else y.add_(beside)).relu_()


class CapturedReading:
    """A form whose kernels a GPU launches by itself, for each of the first shapes it meets."""

    def __init__(self, read: ReadsImages) -> None:
        self.read, self.dtype = read, read.dtype
        self._captured: dict[torch.Size, CapturedCall] = {}

    def __call__(self, image: Float[Tensor, "B 3 H W"], /) -> Any:
        call = self._captured.get(image.shape)
        if call is None:
            if not image.is_cuda or len(self._captured) == MOST:
                return self.read(image)
            call = CapturedCall(self.read, image.to(self.dtype))
            self._captured[image.shape] = call
        return call(image)
