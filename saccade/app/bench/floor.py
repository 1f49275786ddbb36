"""What no program could beat here: the arithmetic at the machine's peak, the weights read once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from saccade.app.bench.timing import Work, measure
from saccade.config import ModelConfig
from saccade.models.image_tokens.dalle import DalleConfig
from saccade.models.joint.config import VilbertConfig
from saccade.models.text.bert import BertConfig
from saccade.models.text.gpt import GptConfig
from saccade.models.text.rnn_attention import RnnAttentionConfig
from saccade.models.text.transformer import TransformerConfig

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
SIDE = {"cuda": 8192, "cpu": 2048}  # of the matrices whose product is timed
COPIED = {"cuda": 1 << 30, "cpu": 1 << 28}  # bytes
ATTENTION = (torch.ops.aten.bmm, torch.ops.aten.baddbmm)
BACKWARD = 3  # a training step is three passes: one more for the inputs, one for the weights


@dataclass(frozen=True)
class Machine:
    """Measured, not taken from a data sheet: floating-point operations and bytes per second."""

    flops: float
    bandwidth: float


def measure_machine(device: torch.device, precision: str) -> Machine:
    """A large matrix product, and a large copy, which reads and writes every byte."""
    side, size = SIDE[device.type], COPIED[device.type]
    dtype = PRECISIONS[precision]
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    here, there = (torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2))
    works: dict[str, Work] = {"product": lambda: torch.mm(a, b), "copy": lambda: there.copy_(here)}
    times = measure(works, device, least_seconds=0.5)
    return Machine(2 * side**3 / times["product"].seconds, 2 * size / times["copy"].seconds)


def training_flops(
    config: TransformerConfig, source: Sequence[int], target: Sequence[int]
) -> float:
    """Of one update on sentences of these lengths, no padding.

        6 · (weights that meet each word) + attention: 12 · D · (pairs that look at each other)

    An encoder layer has 4D² + 2DF weights; a decoder layer 2D² for every word of the source (its
    keys and values) and 6D² + 2DF for every word of the target; the output DV.
    """
    D, F, layers = config.width, config.hidden, config.depth
    per_source = layers * (6 * D**2 + 2 * D * F)
    per_target = layers * (6 * D**2 + 2 * D * F) + D * config.vocabulary
    linear = 2 * (sum(source) * per_source + sum(target) * per_target)
    pairs = sum(s * s + t * (t + 1) // 2 + s * t for s, t in zip(source, target))
    return float(BACKWARD * (linear + 4 * D * layers * pairs))


def language_flops(config: GptConfig, rows: int, window: int) -> float:
    """Of one update of a language model: 12D² weights a layer, and the output."""
    D, layers = config.width, config.depth
    linear = 2 * rows * window * (12 * layers * D**2 + D * config.vocabulary)
    pairs = rows * window * (window + 1) // 2
    return float(BACKWARD * (linear + 4 * D * layers * pairs))


def masked_flops(config: BertConfig, lengths: Sequence[int], hidden: int) -> float:
    """Of one update of a BERT on texts of these lengths, no padding, of which words are hidden.

    A layer has 4D² + 2DF weights, and all words of a text look at each other; the hidden ones
    alone meet the D² before the output, and the output.
    """
    D, F, layers = config.width, config.hidden, config.depth
    linear = 2 * sum(lengths) * layers * (4 * D**2 + 2 * D * F)
    output = 2 * hidden * (D**2 + D * config.vocabulary)
    pairs = sum(n * n for n in lengths)
    return float(BACKWARD * (linear + output + 4 * D * layers * pairs))


def joint_flops(
    config: VilbertConfig, features: int, lengths: Sequence[int], regions: int, passes: int = 1
) -> float:
    """Of one reading of texts beside images of so many regions each, in which they meet `passes`
    times, with other images each time.

    A layer has 4D² + 2DF weights. Where streams meet, each has 2DJ + 2DF for its own positions, and
    2DJ, its keys and values, for the other's.
    """
    D, E, J = config.width, config.region_width, config.join_width
    words, seen, joins = sum(lengths), regions * len(lengths), config.joins
    layer = words * (4 * D**2 + 2 * D * config.hidden) + 2 * D * sum(n * n for n in lengths)
    other = seen * (4 * E**2 + 2 * E * config.region_hidden) + 2 * E * regions * seen
    meet = words * (4 * D * J + 2 * D * config.hidden) + 4 * J * regions * words
    meet += seen * (4 * E * J + 2 * E * config.region_hidden)
    apart = (config.depth - joins) * layer + (config.region_depth - joins) * other
    pooled = len(lengths) * (D + E) * J
    together = passes * (joins * (layer + other + meet) + pooled)
    return 2.0 * (seen * (features + 5) * E + apart + together)


def hidden_flops(config: VilbertConfig, words: int, regions: int, features: int) -> float:
    """Of telling so many hidden words, and regions of which some were hidden."""
    D, E = config.width, config.region_width
    told = config.region_classes or features
    return 2.0 * (words * (D**2 + D * config.vocabulary) + regions * (E**2 + E * told))


class Products(TorchDispatchMode):
    """The operations of each product that is done, and the elements it must read and write.

    Those of attention read nothing: a fused kernel has what it multiplies at hand.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[float, float]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        count = flop_registry.get(func._overloadpacket)
        if count is not None:
            tensors = [x for x in (*args, result) if isinstance(x, Tensor)]
            moved = 0 if func._overloadpacket in ATTENTION else sum(x.numel() for x in tensors)
            self.found.append((count(*args, **(kwargs or {}), out_val=result), moved))
        return result


@torch.no_grad()
def image_floor(
    config: ModelConfig, images: int, side: int, machine: Machine, number_bytes: int
) -> float:
    """Seconds of one pass forward of a model of images, of its products alone.

    Each must be computed, and must read its input and weights and write its output once; the
    slower of the two counts. All else could happen on the way, so this is below what is possible.
    """
    with torch.device("meta"), Products() as products:
        config.build().eval()(torch.empty(images, 3, side, side))
    return sum(
        max(flops / machine.flops, number_bytes * moved / machine.bandwidth)
        for flops, moved in products.found
    )


def decoding_floor(
    config: TransformerConfig, rows: int, steps: int, machine: Machine, weight_bytes: int
) -> float:
    """Seconds of `steps` steps of `rows` hypotheses, of the decoder's linear layers alone.

    Each step must read every weight once and multiply it with every row; the slower of the two
    counts. The encoder and attention are left out, so this is below what is possible.
    """
    D, F = config.width, config.hidden
    weights = config.depth * (6 * D**2 + 2 * D * F) + D * config.vocabulary
    reading = weights * weight_bytes / machine.bandwidth
    return steps * max(reading, 2 * rows * weights / machine.flops)


def drawing_floor(config: DalleConfig, rows: int, machine: Machine, number_bytes: int) -> float:
    """Seconds of drawing `rows` images, one code after another, once their texts were read.

    A step must read every weight once for all rows, and of each row the keys and values of all that
    a layer lets the newest position see; its own are written. The text, all but its last position,
    is read at once. Each must also be computed; the slower of the two counts.
    """
    with torch.device("meta"):
        model = config.build()
    D, prompt, cpu = config.width, config.text - 1, torch.device("cpu")
    layers, output = _count(model.decoder), _count(model.norm) + _count(model.to_codes)
    seen = sum(model.layer_masks.seen(i, cpu).counts.double() for i in range(config.depth))
    assert isinstance(seen, Tensor)  # by each position, in all layers
    steps = seen[prompt : prompt + config.cells]
    flops = 2 * rows * (layers + output + 2 * D * steps)
    moved = number_bytes * (layers + output + 2 * D * rows * steps)
    drawn = torch.maximum(flops / machine.flops, moved / machine.bandwidth).sum().item()
    flops = 2 * rows * (layers * prompt + 2 * D * seen[:prompt].sum().item())
    moved = number_bytes * (layers + 2 * D * config.depth * rows * prompt)
    return drawn + max(flops / machine.flops, moved / machine.bandwidth)


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def rnn_flops(config: RnnAttentionConfig, source: Sequence[int], target: Sequence[int]) -> float:
    """Of one pass forward of a one-layer RNN with additive attention over sentences unpadded.

    A cell of g gates has g·(input + state)·state weights; the encoder's two ways are half as wide.
    """
    D, gates = config.width, {"vanilla": 1, "gru": 3, "lstm": 4}[config.cell]
    seen = 2 * D if config.context == "input" else D
    mixed = 3 * D if config.context == "input" else 2 * D
    per_source = gates * (D**2 + D**2 // 2) + D**2  # the last are its keys
    per_target = gates * (seen + D) * D + D**2 + mixed * D + D * config.vocabulary
    linear = 2 * (sum(source) * per_source + sum(target) * per_target)
    return float(linear + sum(4 * D * s * t for s, t in zip(source, target)))
