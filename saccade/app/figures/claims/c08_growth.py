"""C8: RNN, convolution and self-attention: time, path length and memory against length."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from saccade.app.bench.timing import Work, by_the_wall, measure
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop
from saccade.attention.ladder import SelfAttention
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.conv import GatedConv, pad_around
from saccade.blocks.recurrent.rnn import Rnn
from saccade.train.devices.distributed import choose_device

WIDTH, HEADS, KERNEL, ROWS = 128, 4, 5, 2
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)
SECONDS = 1.0  # of timing for each length
Layer = Callable[[Float[Tensor, "B T D"]], Float[Tensor, "B T D"]]
RNN, CONV, FUSED, KEPT = "RNN", "convolution", "attention", "A kept"
PATHS: dict[str, Callable[[int], int]] = {
    RNN: lambda length: length - 1,
    CONV: lambda length: math.ceil((length - 1) / (KERNEL // 2)),
    FUSED: lambda length: 1,
}


def sequence_layers(device: torch.device) -> dict[str, Layer]:
    """One layer of each, as wide as the others."""
    rnn = Rnn(WIDTH, WIDTH, cell="gru").to(device)
    conv = GatedConv(WIDTH, kernel=KERNEL, dropout=0.0).to(device)
    fused = MultiHeadAttention(WIDTH, heads=HEADS).to(device)
    kept = SelfAttention(WIDTH, key_width=WIDTH, value_width=WIDTH).to(device)
    return {
        RNN: lambda x: rnn(x)[0],
        CONV: lambda x: conv(pad_around(x, KERNEL)),
        FUSED: lambda x: fused(x, x),
        KEPT: lambda x: kept(x).output,
    }


def kept_bytes(layer: Layer, x: Float[Tensor, "B T D"]) -> int:
    """What is held for the backward pass, parameters and input not counted."""
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        if not tensor.is_leaf:
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        layer(x)
    return sum(sizes.values())


def power(lengths: tuple[int, int], costs: tuple[float, float]) -> float:
    """The p of cost ∝ lengthᵖ between two lengths."""
    return math.log(costs[1] / costs[0]) / math.log(lengths[1] / lengths[0])


def _measure(work: Workshop) -> Finding:
    device = choose_device(work.device)
    lengths = [n for n in LENGTHS if n <= max(64, work.share(LENGTHS[-1]))]
    seconds, memory = dict[tuple[str, int], float](), dict[tuple[str, int], float]()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(work.seeds[0])
        layers = sequence_layers(device)
        for length in lengths:
            x = torch.randn(ROWS, length, WIDTH, device=device, requires_grad=True)
            works: dict[str, Work] = {name: _pass(layer, x) for name, layer in layers.items()}
            least = SECONDS * work.budget
            for name, timing in measure(
                works, device, least_seconds=least, least=3, clock=by_the_wall
            ).items():
                seconds[name, length] = timing.milliseconds
                memory[name, length] = kept_bytes(layers[name], x) / 2**20
    return _finding(lengths, seconds, memory)


def _pass(layer: Layer, x: Tensor) -> Callable[[], None]:
    def run() -> None:
        layer(x).sum().backward()

    return run


def _finding(
    lengths: list[int],
    seconds: dict[tuple[str, int], float],
    memory: dict[tuple[str, int], float],
) -> Finding:
    last = lengths[-2], lengths[-1]
    grows = {
        name: power(last, (memory[name, last[0]], memory[name, last[1]]))
        for name in (RNN, CONV, FUSED, KEPT)
    }
    middle = lengths[len(lengths) // 2]
    ratio = seconds[RNN, middle] / seconds[FUSED, middle]
    end = lengths[-1]
    return Finding(
        verdict=f"From the first word to the last of {end:,}, an RNN takes {PATHS[RNN](end):,} "
        f"steps, convolutions of {KERNEL} take {PATHS[CONV](end):,} layers, attention takes one. "
        f"At {middle} words the RNN needs {ratio:.1f} times as long as attention, at {end:,} "
        f"{seconds[RNN, end] / seconds[FUSED, end]:.1f} times. Where its weights A are kept "
        f"they grow as length^{grows[KEPT]:.1f} to {memory[KEPT, end]:.0f} MiB; the fused kernel "
        f"holds {memory[FUSED, end]:.0f} MiB and grows as length^{grows[FUSED]:.1f}.",
        holds=ratio > 1 and grows[KEPT] > 1.5 and max(grows[n] for n in (RNN, CONV, FUSED)) < 1.3,
        head=("words", *(f"{name}: ms, MiB" for name in grows)),
        rows=tuple(
            (f"{n:,}", *(f"{seconds[name, n]:.2f}, {memory[name, n]:.1f}" for name in grows))
            for n in lengths
        ),
        lines=(
            _panel("Time of one layer, there and back", "milliseconds", lengths, seconds),
            _panel("Held for the backward pass", "MiB", lengths, memory),
            _panel(
                "From the first word to the last",
                "steps or layers between them",
                lengths,
                {(name, n): float(path(n)) for name, path in PATHS.items() for n in lengths},
            ),
        ),
    )


def _panel(
    title: str, y_title: str, lengths: list[int], values: dict[tuple[str, int], float]
) -> LinePanel:
    names = list(dict.fromkeys(name for name, _ in values))
    return LinePanel(
        title=title,
        x_title="words",
        y_title=y_title,
        lines={name: tuple(over_seeds(n, [values[name, n]]) for n in lengths) for name in names},
        log_x=True,
        log_y=True,
    )


CLAIM = LectureClaim(
    key="C8",
    title="RNN, convolution, self-attention against length",
    claim="An RNN must go word by word and its paths are as long as the text; convolutions run in "
    "parallel but need many layers to see far; self-attention sees everything at once, at the "
    "price of N × M weights.",
    expect="The RNN's time is highest while texts are short. Where attention keeps its N × M "
    "weights A (“A kept”) memory rises twice as steeply as all others; the fused kernel never "
    "holds them. The path through attention stays one.",
    seconds=45,
    measure=_measure,
)
