"""The bench of drawing: whole images of ours, some codes of theirs, and bytes counted by hand."""

import json
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.app.bench import race
from saccade.app.bench.draw import DrawBench
from saccade.app.bench.floor import Machine, drawing_floor
from saccade.app.bench.ours import drawn_images
from saccade.app.bench.peers.dalle import NEEDS, SomeCodes, make_dalle
from saccade.app.cli.bench import bench_command
from saccade.errors import ConfigError
from saccade.models.image_tokens.dalle import Dalle, DalleConfig
from tests.models import zoo

TINY = DalleConfig(vocabulary=30, text=6, codes=11, grid=4, width=8, depth=3, heads=2, kernel=3)
SIZES = {"vocabulary": 30, "text": 6, "codes": 11, "grid": 4, "width": 8, "depth": 3, "heads": 2}
QUICK = ["draw", "--device", "cpu", "--seconds", "0"]
QUICK += [text for name, value in SIZES.items() for text in (f"--{name}", str(value))]
SLOW_MEMORY = Machine(flops=1e30, bandwidth=1.0)
SLOW_ARITHMETIC = Machine(flops=1.0, bandwidth=1e30)
SEEN = 6, 7, 8, 9, 10, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11  # by rows, from the last word on


class FakeVae:
    def __init__(self, image_size: int, num_layers: int, **sizes: int) -> None:
        self.image_size, self.side = image_size, image_size >> num_layers
        self.sizes = sizes
        self.decode: Any
        self.get_codebook_indices: Any


class FakeDalle(nn.Module):
    """Draws the code after the last one, and notes how long what it read was."""

    def __init__(self, *, vae: FakeVae, **sizes: Any) -> None:
        super().__init__()
        self.vae, self.sizes, self.read = vae, sizes, list[int]()
        self.image_seq_len = vae.side**2

    def generate_images(self, text: Tensor, *, img: Tensor, num_init_img_tokens: int) -> Tensor:
        assert img.shape == (len(text), 3, self.vae.image_size, self.vae.image_size)
        codes = self.vae.get_codebook_indices(img)[:, :num_init_img_tokens]
        while codes.shape[1] < self.image_seq_len:
            self.read.append(text.shape[1] + codes.shape[1])
            codes = torch.cat([codes, torch.full((len(text), 1), 7)], dim=1)
        return self.vae.decode(codes)


@pytest.fixture(autouse=True)
def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.app.cli.bench.measure_machine", lambda *_: Machine(1e12, 1e11))


@pytest.fixture
def fake_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType(NEEDS)
    module.DiscreteVAE, module.DALLE = FakeVae, FakeDalle
    monkeypatch.setitem(sys.modules, NEEDS, module)
    monkeypatch.setattr(race, "find_spec", lambda name: ModuleSpec(name, None))


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert bench_command([*QUICK, *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["results"]


@pytest.mark.slow
@pytest.mark.usefixtures("fake_peer")
def test_one_image_and_many_are_drawn_beside_some_codes_of_theirs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one, many = figures(capsys, "--batch", "1", "3")
    for found, batch in ((one, 1), (many, 3)):
        ours, theirs = found["rows"]
        assert (ours["name"], theirs["name"]) == ("saccade", "dalle-pytorch")
        assert (found["job"]["unit"], found["job"]["tokens"]) == ("codes", 16 * batch)
        assert (ours["share"], theirs["share"]) == (1.0, 4 / 16)
        assert found["job"]["floor_seconds"] > 0
        assert found["spent"] == {}
    assert one["job"]["title"].startswith("1 image of 4×4 codes drawn after 6 tokens of text")
    (profiled,) = figures(capsys, "--batch", "1", "--profile")
    assert {"product", "gaps"} < profiled["spent"]["saccade"].keys()


def test_without_the_peer_it_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race, "find_spec", lambda name: None)
    bench_command([*QUICK, "--batch", "1"])
    said = capsys.readouterr().out
    assert "not measured: dalle-pytorch (dalle_pytorch is not installed)" in said


def test_ours_are_whole_images_as_probable_as_they_say() -> None:
    model = zoo.build(TINY, torch.float32).eval()
    assert isinstance(model, Dalle)
    words = torch.randint(4, 30, (2, 3), generator=torch.Generator().manual_seed(0))
    drawn = drawn_images(model, words)()
    assert [len(one.codes) for one in drawn] == [16, 16]
    text = torch.cat([torch.tensor([[1], [1]]), words, torch.tensor([[2], [2]])], dim=1)
    tokens = model.text_tokens(torch.nn.functional.pad(text, (0, 1)), torch.tensor([5, 5]))
    codes = torch.tensor([one.codes for one in drawn])
    hidden = model.words.decode(torch.cat([tokens, codes], dim=1)[:, :-1])[:, 5:]
    log_p = model.output(hidden).log_softmax(dim=-1).gather(2, codes[..., None]).sum(dim=(1, 2))
    found = torch.tensor([one.log_probability for one in drawn])
    torch.testing.assert_close(found, log_p, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("fake_peer")
def test_theirs_draws_a_code_in_the_middle_of_each_quarter() -> None:
    model = make_dalle(TINY)
    assert model.sizes["attn_types"] == ("axial_row", "axial_col", "conv_like")
    assert (model.sizes["dim"], model.sizes["heads"], model.sizes["dim_head"]) == (8, 2, 4)
    assert (model.sizes["num_text_tokens"], model.sizes["text_seq_len"]) == (30, 6)
    assert (model.vae.side, model.vae.sizes["num_tokens"]) == (4, 11)
    text, begun = torch.zeros(2, 6, dtype=torch.long), torch.arange(32).view(2, 16) % 7
    some = SomeCodes(model, text, begun)
    drawn = some()
    assert some.share == 4 / 16
    assert model.read == [6 + 2, 6 + 6, 6 + 10, 6 + 14]
    for codes, place in zip(drawn, (2, 6, 10, 14), strict=True):
        assert torch.equal(codes[:, :-1], begun[:, :place])
        assert codes[:, -1].eq(7).all()


@pytest.mark.skipif(find_spec(NEEDS) is None, reason="DALLE-pytorch is not installed")
@pytest.mark.filterwarnings("ignore")
def test_the_package_itself_draws_what_it_is_asked_for() -> None:
    model = make_dalle(DalleConfig(**{**SIZES, "width": 24}))
    read: list[int] = []
    model.transformer.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].shape[1]))
    begun = torch.arange(32).view(2, 16) % 11
    drawn = SomeCodes(model, torch.ones(2, 6, dtype=torch.long), begun)()
    assert read == [1 + 6 + place for place in (2, 6, 10, 14)]  # it begins with one more
    for codes, place in zip(drawn, (2, 6, 10, 14), strict=True):
        assert torch.equal(codes[:, :-1], begun[:, :place])
        assert codes.shape == (2, place + 1)
        assert codes.max() < 11


def test_the_floor_counts_the_bytes_that_must_be_read() -> None:
    """Of two layers, one that sees rows and one that sees neighbourhoods, after six words."""
    model = DalleConfig(**{**SIZES, "depth": 2}, kernel=3)
    D, layer = 8, 12 * 64 + 13 * 8  # 4 + 8 matrices; biases of q, k, v, output and MLP, two norms
    output = 2 * D + 11 * D + 11
    neighbours = [6 + _near(cell) for cell in range(16)]
    kept = sum(SEEN) + 6 + sum(neighbours[:15])  # the last code is not read again
    for rows in (1, 3):
        steps = 16 * (2 * layer + output) + rows * 2 * D * kept
        prefill = 2 * layer + rows * 2 * D * 2 * 5
        assert drawing_floor(model, rows, SLOW_MEMORY, 2) == pytest.approx(2 * (steps + prefill))


def _near(cell: int) -> int:
    """Of 3×3 cells around one, and that it sees: itself, its left, and three above."""
    back = (0, 1, 3, 4, 5)
    return sum(cell - one >= 0 for one in back)


def test_the_floor_counts_what_must_be_computed_where_that_is_slower() -> None:
    D, layer, output = 8, 12 * 64 + 13 * 8, 2 * 8 + 11 * 8 + 11
    model = DalleConfig(**{**SIZES, "depth": 2}, kernel=3)
    looks = sum(SEEN) + 6 + sum(6 + _near(cell) for cell in range(15))
    steps = 2 * (16 * (2 * layer + output) + 2 * D * looks)
    prefill = 2 * (5 * 2 * layer + 2 * D * 2 * 15)  # 1 + 2 + 3 + 4 + 5 words see each other
    for rows in (1, 3):
        found = drawing_floor(model, rows, SLOW_ARITHMETIC, 2)
        assert found == pytest.approx(rows * (steps + prefill))


def test_the_large_one_has_as_many_weights_as_is_said() -> None:
    with torch.device("meta"):
        model = DrawBench(device="cpu", size="large").config.build()
    assert round(sum(p.numel() for p in model.parameters()) / 1e9, 1) == 1.3


def test_sizes_fit_the_device_and_nonsense_is_refused() -> None:
    small, large = DrawBench(device="cpu").config, DrawBench(device="cpu", size="large").config
    assert (small.grid, small.width) == (8, 128)
    assert (large.text, large.cells, large.codes, large.depth) == (256, 1024, 8192, 24)
    assert DrawBench(device="cpu", size="large", grid=16, depth=2).config.cells == 256
    with pytest.raises(ConfigError, match="batch=1 0 must be numbers of images, 1 or more each"):
        DrawBench(batch=(1, 0))
    with pytest.raises(ConfigError, match="batch=nothing leaves nothing to measure"):
        DrawBench(batch=())
    with pytest.raises(ConfigError, match="text=3 has no place for a word; give 4 or more"):
        DrawBench(text=3)
    with pytest.raises(ConfigError, match="vocabulary=4 has no word; give 5 or more"):
        DrawBench(vocabulary=4)
    with pytest.raises(ConfigError, match="width=10 does not divide into heads=4"):
        DrawBench(device="cpu", width=10)
    with pytest.raises(ConfigError, match="peers=jax is not one of dalle-pytorch"):
        DrawBench(peers="jax")
