"""C4: self-attention does not see the order of its inputs; positions make it."""

import itertools
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import BarPanel, Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.positions import Added, FixedPositions, LearnedPositions, sinusoids
from saccade.blocks.stack import WholeSequences

WIDTH, HEADS, WORDS, DEPTH = 64, 4, 32, 4
SWAPS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24)  # how far apart two words are that change places
FLOOR = 1e-9  # what a logarithmic axis shows of nothing
BLIND = 1e-5  # what rounding may do
Model = Callable[[Float[Tensor, "B T D"]], Float[Tensor, "B T D"]]


def unequal(model: Model, x: Float[Tensor, "B T D"], order: Int[Tensor, " T"]) -> float:
    """How far a model is from equivariance under one shuffle s of its inputs.

    ‖f(s(x)) − s(f(x))‖ / ‖f(x)‖
    """
    with torch.no_grad():
        first, then = model(x)[:, order], model(x[:, order])
    return ((then - first).norm() / first.norm()).item()


def order_models() -> dict[str, Model]:
    """Fresh ones, from torch's global random state."""
    attention = MultiHeadAttention(WIDTH, heads=HEADS)
    layers = (EncoderLayer(WIDTH, heads=HEADS, hidden=4 * WIDTH) for _ in range(DEPTH))
    blocks = nn.ModuleList(layers).eval()
    fixed = Added(FixedPositions(sinusoids, WIDTH))
    learned = Added(LearnedPositions(WORDS, WIDTH))

    def encode(x: Tensor, *, causal: bool = False) -> Tensor:
        for block in blocks:
            x = block(x, WholeSequences(causal=causal))
        return x

    return {
        "self-attention": lambda x: attention(x, x),
        f"{DEPTH} encoder blocks": encode,
        "+ causal mask": lambda x: encode(x, causal=True),
        "+ fresh learned positions": lambda x: encode(learned(x)),
        "+ sinusoids": lambda x: encode(fixed(x)),
    }


Changes = dict[tuple[str, int], list[float]]  # by model and how far two words were swapped; 0: all


def _measure(work: Workshop) -> Finding:
    found = _changes(work.seeds)
    shuffled = {name: values for (name, apart), values in found.items() if not apart}
    bars = {n: over_seeds(0, [max(one, FLOOR) for one in v]) for n, v in shuffled.items()}
    blind, seeing = list(bars.values())[:2], list(bars.values())[2:]
    return Finding(
        verdict=f"Shuffling the input shuffles the output of self-attention to within "
        f"{blind[0].high:.0e} and of {DEPTH} encoder blocks to within "
        f"{blind[1].high:.0e}: rounding. With sinusoids it changes by "
        f"{100 * seeing[-1].mean:.0f} %, and with the causal mask alone by "
        f"{100 * seeing[0].mean:.0f} %.",
        holds=all(one.high < BLIND for one in blind) and all(one.low > BLIND for one in seeing),
        head=("model", "change under a shuffle", "smallest", "largest"),
        rows=tuple(
            (name, f"{one.mean:.2e}", f"{one.low:.2e}", f"{one.high:.2e}")
            for name, one in bars.items()
        ),
        bars=(
            BarPanel(
                title="One random shuffle of 32 words",
                x_title="‖f(s(x)) − s(f(x))‖ / ‖f(x)‖",
                groups=tuple(bars),
                bars={"change": tuple(bars.values())},
                log_x=True,
            ),
        ),
        lines=(_swaps(found, {"no positions": list(bars)[1], "sinusoids": list(bars)[-1]}),),
    )


def _changes(seeds: tuple[int, ...]) -> Changes:
    found: Changes = {}
    for seed in seeds:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            models, x = order_models(), torch.randn(8, WORDS, WIDTH)
            orders = {0: torch.randperm(WORDS), **{apart: _swap(apart) for apart in SWAPS}}
        for (name, model), (apart, order) in itertools.product(models.items(), orders.items()):
            found.setdefault((name, apart), []).append(unequal(model, x, order))
    return found


def _swap(apart: int, first: int = 2) -> Int[Tensor, " T"]:
    order = torch.arange(WORDS)
    order[[first, first + apart]] = order[[first + apart, first]]
    return order


def _swaps(found: Changes, shown: dict[str, str]) -> LinePanel:
    return LinePanel(
        title="Two words change places",
        x_title="how far they are apart",
        y_title="change of the output",
        lines={
            label: tuple(over_seeds(apart, found[name, apart]) for apart in SWAPS)
            for label, name in shown.items()
        },
    )


CLAIM = LectureClaim(
    key="C4",
    title="Self-attention does not see order; positions make it",
    claim="Self-attention works on sets: permute the inputs and the outputs are permuted alike, "
    "f(s(x)) = s(f(x)). Whoever needs order must add positions.",
    expect="Models without positions differ by rounding only, whatever the shuffle; with positions "
    "or a causal mask the same words in another order give other outputs.",
    seconds=3,
    measure=_measure,
)
