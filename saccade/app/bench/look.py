"""What looking costs beside the fused kernel, and how exact it is, in one run."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.app.bench.timing import Work, check_measuring, measure
from saccade.attention import masks
from saccade.attention.kernels.look import dense
from saccade.attention.kernels.sdpa import sdpa_with_lse
from saccade.attention.look.glance import BUNDLE, ROWS, Glance, Keep
from saccade.attention.look.observe import observe
from saccade.attention.look.view import View
from saccade.config import check_positive
from saccade.errors import ConfigError
from saccade.train.devices.distributed import choose_device

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
LARGEST_DENSE = {"cuda": 60 << 30, "cpu": 4 << 30}  # bytes that eager attention may take
CHECKED = 2048  # positions at which errors are measured


@dataclass(frozen=True, kw_only=True)
class LookBench:
    """Measure attention with statistics of where it looks.

    Rows are log-sum-exp, entropy, maximum, sink and local mass; the bundle has also received mass,
    mean and max maps and the top 8. Beside the fused kernel alone and beside attention that holds
    every weight.

    Args:
        lengths: positions, one row each.
        heads: how many.
        head_width: of each head.
        causal: no position sees those after it.
        precision: bf16, fp16 or fp32.
        device: cpu or cuda.
        seed: of the queries, keys and values.
        seconds: for which each length is measured at least.
    """

    lengths: tuple[int, ...] = (1024, 4096, 8192)
    heads: int = 8
    head_width: int = 64
    causal: bool = True
    precision: str = "fp32"
    device: str = "cpu"
    seed: int = 0
    seconds: float = 2.0

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ConfigError(f"precision={self.precision} is not one of {', '.join(PRECISIONS)}")
        check_positive(self, "heads", "head_width")
        if not self.lengths or min(self.lengths) < 1:
            raise ConfigError(f"lengths={self.lengths} must be positions, each 1 or more")
        check_measuring(self.seconds, self.seed)
        choose_device(self.device)

    def draw(self, length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values; queries are doubled so that some keys stand out."""
        rng = torch.Generator(self.device).manual_seed(self.seed)
        shape = (1, self.heads, length, self.head_width)
        q, k, v = (torch.randn(shape, generator=rng, device=self.device) for _ in range(3))
        dtype = PRECISIONS[self.precision]
        return (2 * q).to(dtype), k.to(dtype), v.to(dtype)


@dataclass(frozen=True)
class LookCost:
    """One length: milliseconds, ratios to the fused kernel, and memory in MiB."""

    length: int
    fused_ms: float
    rows_ms: float
    bundle_ms: float
    eager_ms: float | None
    rows_ratio: float
    bundle_ratio: float
    eager_ratio: float | None
    rows_mib: float | None
    bundle_mib: float | None
    eager_mib: float | None
    same_output: bool


@dataclass(frozen=True)
class Error:
    """The largest error of one statistic, and that of the same arithmetic done densely."""

    statistic: str
    error: float
    dense_error: float


def run_look_bench(bench: LookBench) -> Iterator[LookCost]:
    """A row per length, as soon as it is measured."""
    with torch.inference_mode():
        for length in bench.lengths:
            yield _row(bench, length)


def _row(bench: LookBench, length: int) -> LookCost:
    q, k, v = bench.draw(length)
    works: dict[str, Work] = {
        "fused": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=bench.causal),
        "rows": lambda: _looked(bench, q, k, v, ROWS),
        "bundle": lambda: _looked(bench, q, k, v, BUNDLE),
    }
    if 3 * bench.heads * length**2 * 4 <= LARGEST_DENSE[torch.device(bench.device).type]:
        works["eager"] = _eager(bench, q, k, v)
    times = measure(works, torch.device(bench.device), least_seconds=bench.seconds)
    ratio = {name: time.seconds / times["fused"].seconds for name, time in times.items()}
    eager = times.get("eager")
    plain = F.scaled_dot_product_attention(q, k, v, is_causal=bench.causal)
    return LookCost(
        length,
        times["fused"].milliseconds,
        times["rows"].milliseconds,
        times["bundle"].milliseconds,
        None if eager is None else eager.milliseconds,
        ratio["rows"],
        ratio["bundle"],
        ratio.get("eager"),
        times["rows"].peak_mib,
        times["bundle"].peak_mib,
        None if eager is None else eager.peak_mib,
        torch.equal(plain, _looked(bench, q, k, v, ROWS)[0]),
    )


def _looked(bench: LookBench, q: Tensor, k: Tensor, v: Tensor, keep: Keep) -> tuple[Tensor, Glance]:
    """What a watched site does: the fused output, and the statistics."""
    output, lse = sdpa_with_lse(q, k, v, causal=bench.causal)
    view = View(q, k, bench.head_width**-0.5, causal=bench.causal, lse=lse)
    return output, observe(view, keep)


def _eager(bench: LookBench, q: Tensor, k: Tensor, v: Tensor) -> Work:
    """Attention by the formula, as others give weights."""
    view = View(q, k, bench.head_width**-0.5, causal=bench.causal)
    hidden = _hidden(view)

    def by_the_formula() -> tuple[Tensor, Tensor]:
        weights = _scores(view, hidden).softmax(dim=-1, dtype=torch.float32).to(q.dtype)
        return weights @ v, weights

    return by_the_formula


def _hidden(view: View) -> Tensor | None:
    return ~masks.causal(*view.shape[2:], device=view.q.device) if view.causal else None


def _scores(view: View, hidden: Tensor | None) -> Tensor:
    scores = view.q @ view.k.mT * view.scale
    return scores if hidden is None else scores.masked_fill(hidden, -torch.inf)


@torch.inference_mode()
def errors(bench: LookBench) -> list[Error]:
    """Against float64, at a length where everything can be held."""
    q, k, v = bench.draw(CHECKED)
    view = View(q, k, bench.head_width**-0.5, causal=bench.causal)
    exact = _dense(replace(view, q=q.double(), k=k.double())).tensors()
    both = (_looked(bench, q, k, v, BUNDLE)[1].tensors(), _dense(view).tensors())
    return [
        Error(name, *(float((x[name].double() - exact[name]).abs().max()) for x in both))
        for name in exact
        if name not in ("where", "top_places")
    ]


def _dense(view: View) -> Glance:
    """By the formula, every step in the precision of the queries."""
    scores = _scores(view, _hidden(view))
    return dense.observe(scores.softmax(dim=-1), BUNDLE, lse=scores.logsumexp(dim=-1))


def table(rows: list[LookCost], found: list[Error]) -> dict[str, object]:
    """All that was measured, for programs."""
    return {"lengths": [asdict(row) for row in rows], "errors": [asdict(one) for one in found]}
