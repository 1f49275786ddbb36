"""Steps at fixed places, in Triton's interpreter: the words of the plain search, and its state.

Triton decides between interpreter and compiler when a kernel is defined, and cannot read kernels
that the shape checker has wrapped: so another process, without the checker, runs them.
"""

import importlib.util
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.blocks.inference.slots import DecoderShape, Slots
from saccade.blocks.recurrent.gates import GATES
from saccade.data.tokens.vocabulary import OURS
from saccade.decode.beam import Beam
from saccade.decode.beam_state import BeamState
from saccade.decode.captured import CapturedDecoder, room_for
from saccade.decode.greedy import Greedy
from saccade.decode.guided import Guided, GuidedState
from saccade.decode.protocol import Candidate, Hypothesis
from saccade.decode.sample import Sampler, uniforms
from saccade.decode.search import search
from saccade.decode.top import top
from saccade.models.image_tokens.dalle import Dalle, DalleConfig
from saccade.models.inference.lean import lean
from tests.models import captioners, gallery
from tests.models.zoo import LANGUAGE, LENGTHS, SOURCE, TARGET, TRANSLATORS, build

END, START = OURS.end, OURS.start

ROOT = Path(__file__).parents[2]
LIMITS = torch.tensor([7, 3, 5])
FIRST = torch.full((3,), START)
NAMES = ("transformer post sinusoids", "transformer pre learned", "gpt-nano")
RECURRENT = (
    "rnn-attention vanilla layer depth=1",
    "rnn-attention gru input depth=2",
    "rnn-attention lstm readout depth=2",
    "rnn-attention-luong",
)
ATTENDING = ("show-attend-tell reads first", "show-attend-tell hard")
CHECKS: dict[str, Callable[[], None]] = {}


def check(law: Callable[[], None]) -> Callable[[], None]:
    CHECKS[law.__name__] = law
    return law


def decoders() -> list[tuple[Any, Callable[[], Any]]]:
    """Models with heads as wide as kernels need them, and how their states begin."""
    found: list[tuple[Any, Callable[[], Any]]] = []
    for name in NAMES:
        config = replace({**TRANSLATORS, **LANGUAGE}[name], width=32, heads=2)  # type: ignore[call-arg]
        model: Any = lean(build(config, torch.float32), "float32")
        gpt = name == "gpt-nano"
        begin = (lambda m=model: m.read(TARGET[:, :3], None)[1]) if gpt else None
        found.append((model, begin or (lambda m=model: m.start(SOURCE, LENGTHS))))
    captioner = replace(captioners.CONFIGS["cnn pre"], width=24)  # heads of 12: no power of two
    told: Any = lean(captioners.build(captioner, torch.float32), "float32")
    found.append((told, lambda: told.start(captioners.PICTURES)))
    for name in RECURRENT:
        model = lean(build(TRANSLATORS[name], torch.float32), "float32")
        found.append((model, lambda m=model: m.start(SOURCE, LENGTHS)))
    for name in ATTENDING:
        model = lean(gallery.build(gallery.CAPTIONERS[name], torch.float32), "float32")
        found.append((model, lambda m=model: m.start(captioners.PICTURES)))
    return found


def candidates_of(run: Callable[..., Any], method: Any, given_up: int) -> tuple[Any, Any]:
    """What is found, and what every step tells, when one row is given up after two steps."""
    told: list[dict[int, list[Candidate]]] = []

    def tell(step: dict[int, list[Candidate]]) -> list[int]:
        told.append(step)
        return [given_up] if len(told) == 2 else []

    return run(FIRST, limits=LIMITS, end=END, method=method, on_step=tell), told


def agree(ours: list[list[Hypothesis]], theirs: list[list[Hypothesis]]) -> None:
    for these, those in zip(ours, theirs, strict=True):
        assert [one.tokens for one in these] == [one.tokens for one in those]
        assert [one.finished for one in these] == [one.finished for one in those]
        for one, other in zip(these, those):
            assert abs(one.score - other.score) < 1e-4
            assert abs(one.log_probability - other.log_probability) < 1e-4


METHODS = (Greedy(), Beam(size=2), Beam(size=3), Beam(size=3))  # the same places are used again


@check
def searches_as_the_plain_search_does() -> None:
    for model, begin in decoders():
        captured = CapturedDecoder(model, graphs=False)  # every kernel, but there is no GPU here
        for method in METHODS:
            how: dict[str, Any] = {"limits": LIMITS, "end": END, "method": method}
            found = captured.search(begin(), FIRST, **how)
            agree(found, search(model, begin(), FIRST, **how))
        assert len(captured.kept) == 3


@check
def draws_as_the_plain_way_does() -> None:
    table = uniforms(1, range(3), 7)
    for sampler in (Sampler(), Sampler(temperature=0.7, top_k=9, top_p=0.8)):
        for model, begin in decoders()[::3]:
            captured = CapturedDecoder(model, graphs=False)
            how: dict[str, Any] = {"limits": LIMITS, "end": END, "method": Greedy(sampler=sampler)}
            found = captured.search(begin(), FIRST, uniforms=table, **how)
            agree(found, search(model, begin(), FIRST, uniforms=table, **how))


@check
def draws_images_as_the_plain_way_does() -> None:
    """Layers that see rows, columns and neighbourhoods; with guidance and without."""
    config = DalleConfig(
        vocabulary=9, text=5, codes=13, grid=4, width=24, depth=4, heads=2, kernel=3
    )
    written = build(config, torch.float32)
    assert isinstance(written, Dalle)
    model: Any = lean(written, "float32")
    words = torch.arange(3)[:, None] + torch.arange(5)
    texts = written.text_tokens(words, torch.tensor([3, 4, 2]))
    how: dict[str, Any] = {"method": Greedy(sampler=Sampler(temperature=0.8)), "end": -1}
    how |= {"limits": torch.tensor([16, 16, 16]), "uniforms": uniforms(1, range(3), 16)}

    def begin(rows: torch.Tensor) -> Any:
        return model.read(rows[:, :-1], model.start(len(rows)))[1]

    def same(decoder: Any, captured: CapturedDecoder, state: Callable[[], Any]) -> None:
        found = captured.search(state(), texts[:, -1], **how)
        agree(found, search(decoder, state(), texts[:, -1], **how))
        assert all(len(one.tokens) == 16 for (one,) in found)

    same(model, CapturedDecoder(model, graphs=False), lambda: begin(texts))
    guided = Guided(model, torch.tensor(2.5))
    captured = CapturedDecoder(guided, graphs=False)
    for scale in (2.5, 0.5):  # what was captured once follows the text more or less closely
        guided.scale.fill_(scale)
        same(guided, captured, lambda: GuidedState(begin(texts.repeat_interleave(2, dim=0))))


@check
def tells_every_step_as_the_plain_search_does() -> None:
    for model, begin in decoders()[::3]:
        captured = CapturedDecoder(model, graphs=False)
        for method, given_up in product(METHODS[:3], (0, 1)):
            found, told = candidates_of(partial(captured.search, begin()), method, given_up)
            expected, steps = candidates_of(partial(search, model, begin()), method, given_up)
            agree(found, expected)
            assert len(told) == len(steps)
            for ours, theirs in zip(told, steps):
                assert ours.keys() == theirs.keys()
                for row, some in theirs.items():
                    here = [one._replace(log_probability=0.0) for one in ours[row]]
                    assert here == [one._replace(log_probability=0.0) for one in some]
                    for one, other in zip(ours[row], some):
                        assert abs(one.log_probability - other.log_probability) < 1e-4


@check
def one_kernel_expands_as_many_operations_do() -> None:
    from saccade.decode.kernels.advance import advance_beams

    for beams, vocabulary, end in ((2, 4, 0), (3, 9, 1), (5, 40, 2), (8, 20, 16)):
        rng = torch.Generator().manual_seed(beams)
        states = [
            Beam(size=beams, length_penalty=0.8).state(5, 16, end, torch.device("cpu"))
            for _ in range(2)
        ]
        slots = [empty_slots(5, beams) for _ in range(2)]
        for state in states:
            state.begin(torch.tensor([12, 1, 6, 9, 0]))
        for _ in range(12):
            logits = 2 * torch.randn(5 * beams, vocabulary, generator=rng)
            logits[:, end] += 1.0
            going = ~states[1].over
            advance_beams(states[0], slots[0], top(logits, 2 * beams))
            slots[1].go_on(*states[1].advance(logits))
            same_state(*states, *slots, going)


def same_state(
    one: BeamState, other: BeamState, places: Slots, expected: Slots, told: torch.Tensor
) -> None:
    """Equal wherever it matters: what is empty or over may hold anything."""
    going, time = ~other.over, int(other.time)
    assert torch.equal(one.over, other.over)
    assert torch.equal(one.time, other.time)
    there = other.scores > -torch.inf
    torch.testing.assert_close(one.scores, other.scores)
    torch.testing.assert_close(one.done_log_p[there], other.done_log_p[there])
    for name in ("ended", "sizes", "slots"):
        assert torch.equal(getattr(one, name)[there], getattr(other, name)[there]), name
    ending = (other.ending_log_p > -torch.inf) & told[:, None]
    torch.testing.assert_close(one.ending_log_p[told], other.ending_log_p[told])
    assert torch.equal(one.ending_parents[ending], other.ending_parents[ending])
    live = other.log_p > -torch.inf
    torch.testing.assert_close(one.log_p[going], other.log_p[going])
    live &= going[:, None]
    for name in ("words", "parents"):
        ours, theirs = (getattr(state, name)[:, time - 1] for state in (one, other))
        assert torch.equal(ours[live], theirs[live]), name
    beams = live.shape[1]
    assert torch.equal(places.tokens.view(-1, beams)[live], expected.tokens.view(-1, beams)[live])
    origins, theirs = (x.origins.view(-1, beams)[live] for x in (places, expected))
    assert torch.equal(origins, theirs)
    assert torch.equal(places.writers[..., :time][live], expected.writers[..., :time][live])
    assert torch.equal(places.clock, expected.clock)


def empty_slots(sentences: int, beams: int) -> Slots:
    room = DecoderShape(sentences=sentences, beams=beams, steps=16)
    return Slots(room, depth=1, heads=1, width=16, like=torch.empty(0))


@check
def one_kernel_appends_as_many_operations_do() -> None:
    from saccade.decode.kernels.advance import advance_rows

    rng = torch.Generator().manual_seed(0)
    both = [Greedy().state(5, 16, 3, torch.device("cpu")) for _ in range(2)]
    for state in both:
        state.begin(torch.tensor([9, 1, 5, 0, 7]))
    slots = empty_slots(5, 1)
    for _ in range(9):
        words = torch.randint(5, (5,), generator=rng)
        log_p = -torch.rand(5, generator=rng)
        advance_rows(both[0], slots, words, log_p)
        both[1].append(words, log_p)
        for name in ("time", "over", "ended", "sizes", "log_p", "words"):
            assert torch.equal(getattr(both[0], name), getattr(both[1], name)), name
        assert torch.equal(slots.tokens, words)


@check
def one_kernel_draws_as_many_operations_do() -> None:
    from saccade.decode.kernels import draw

    draw.AT_ONCE = 64
    rng, rows = torch.Generator().manual_seed(0), 40
    for size, temperature in ((5, 1.0), (64, 0.7), (301, 1.3), (301, 1e-40)):
        logits = 3 * torch.randn(rows, size + 2, generator=rng)[:, :size]
        logits[:, 1] = -torch.inf
        logits[: rows // 2, size // 2 :] = -1e4  # whose weight is nothing
        table = uniforms(1, range(rows), 3)
        table[0, 2], table[1, 2], table[2, 2] = 0.0, 1 - 2**-53, 0.5
        state = Greedy(sampler=Sampler(temperature=temperature)).state(
            rows, 3, -1, torch.device("cpu")
        )
        state.begin(torch.full((rows,), 3), table)
        state.time += 2
        words, log_p = state._choose_at(logits)
        expected = state.choose(logits)
        assert torch.equal(words, expected[0])
        torch.testing.assert_close(log_p, expected[1])
        assert len(set(words.tolist())) > 1


@check
def beams_that_share_a_memory_read_what_the_formula_says() -> None:
    from saccade.attention.kernels.train.additive_step import look

    rng = torch.Generator().manual_seed(0)
    for sentences, beams, places, hidden, width in ((3, 1, 5, 7, 9), (2, 3, 31, 300, 140)):
        rows, memory = sentences * beams, (sentences, places)
        shapes = (rows, 2 * hidden), (*memory, hidden), (*memory, width), (hidden,), (rows, width)
        wide, k, v, w, onto = (torch.randn(shape, generator=rng) for shape in shapes)
        q = wide[:, hidden:]  # beside something else, as a joint product leaves it
        hide = torch.zeros(sentences, 1, places)
        hide[-1, :, places // 2 :] = -torch.inf
        by_sentence = q.unflatten(0, (sentences, beams)).double()
        e = (by_sentence[:, :, None] / 2 + k.double()[:, None] / 2).tanh() @ (w.double() / 2)
        for some in (hide, None):
            a = (e if some is None else e + some).softmax(dim=-1)
            c = (a @ v.double()).flatten(0, 1)
            assert (look(q, k, v, some, w, None)[0] - a).abs().max() < 1e-5
            assert (look(q, k, v, some, w, None)[1] - c).abs().max() < 1e-5
            assert (look(q, k, v, some, w, onto)[1] - (c + onto).tanh()).abs().max() < 1e-5


@check
def a_cell_steps_in_one_kernel_as_its_gates_do() -> None:
    from saccade.blocks.kernels import cell

    cell.BLOCK = 16
    rng = torch.Generator().manual_seed(0)
    for kind, gates in (("vanilla", 1), ("gru", 3), ("lstm", 4)):
        x, u, h, c = (
            torch.randn(shape, generator=rng) for shape in ((3, 150), (3, 140), (3, 33), (3, 33))
        )
        x, u = x[:, : gates * 33], u[:, : gates * 33]  # beside something else
        state = h, c if kind == "lstm" else None
        expected, _ = GATES[kind].step(x, u, state)
        found = cell.cell(kind, x, u, state, None)
        cell.cell(kind, x, u, state, state)  # in place
        for one, same, other in zip(found, state, expected):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                torch.testing.assert_close(one, other)
                assert torch.equal(one, same)


@check
def one_reading_finds_the_best_words() -> None:
    from saccade.decode.kernels import top as kernels

    kernels.CHUNK, kernels.AT_ONCE = 16, 4
    for seed in range(3):
        x = 3 * torch.randn(5, 301, generator=torch.Generator().manual_seed(seed))
        x = x.round() if seed else x  # many equal scores: the smaller number comes first
        for count in (1, 10):
            scores, words, total = kernels.take_top(x, count)
            expected = x.sort(dim=-1, descending=True, stable=True)
            assert torch.equal(words, expected.indices[:, :count])
            assert torch.equal(scores, expected.values[:, :count])
            torch.testing.assert_close(total, x.logsumexp(dim=-1))


@check
def residual_and_norm_and_embedding_are_one_kernel_each() -> None:
    from saccade.blocks.inference import kernels

    torch.manual_seed(0)
    x, y, weight, bias = torch.randn(5, 48), torch.randn(5, 48), torch.randn(48), torch.randn(48)
    expected = torch.nn.functional.layer_norm(x + y, (48,), weight, bias, 1e-5)
    total, normed = kernels.add_norm(x, y.clone(), weight, bias, 1e-5)
    torch.testing.assert_close(total, x + y)
    torch.testing.assert_close(normed, expected)
    clock = torch.tensor([1, 2], dtype=torch.int32)
    made = kernels.embed(torch.tensor([1, 3]), x, 2.0, y, clock, torch.float32)
    torch.testing.assert_close(made, 2 * x[[1, 3]] + y[3])


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What went wrong in each check, nothing where it held."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    path = tmp_path_factory.mktemp("captured") / "failures.pt"
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(ROOT)
    subprocess.run([sys.executable, __file__, str(path)], check=True, env=environment, cwd=ROOT)
    return torch.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_holds_in_the_interpreter(name: str, failures: dict[str, str]) -> None:
    assert failures[name] == ""


@pytest.mark.parametrize(
    ("sentences", "rounded"), [(1, 1), (2, 2), (7, 7), (9, 10), (100, 112), (256, 256)]
)
def test_room_is_rounded_up_by_at_most_a_quarter(sentences: int, rounded: int) -> None:
    room = room_for(torch.full((sentences,), 33), 5, {"source": 20})
    assert room == DecoderShape(sentences=rounded, beams=5, steps=64, source=32)


@pytest.mark.parametrize("method", [Greedy(), Beam(size=2)])
def test_places_that_a_batch_leaves_empty_are_over_from_the_beginning(method: Any) -> None:
    state = method.state(4, 8, END, torch.device("cpu"))
    state.begin(torch.tensor([3, 5]))
    assert state.over.tolist() == [False, False, True, True]


def main(path: str) -> None:
    from tests.attention.kernels.look.test_tiles import mend_interpreter

    mend_interpreter()
    found: dict[str, str] = {}
    for name, law in CHECKS.items():
        try:
            law()
            found[name] = ""
        except Exception:
            found[name] = traceback.format_exc()
    torch.save(found, path)


if __name__ == "__main__":
    main(sys.argv[1])
