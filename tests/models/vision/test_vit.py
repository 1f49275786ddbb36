"""Vision Transformers: published sizes, Hugging Face's numbers, and where they look."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import ViTConfig as TheirConfig
from transformers import ViTForImageClassification

from saccade.attention.axes import Axis
from saccade.attention.look.looking import looking
from saccade.attention.look.watching import sites
from saccade.errors import ConfigError
from saccade.models.names.pretrained import load_pretrained
from saccade.models.vision.vit import PRESETS, Vit, VitConfig

SIZES = {  # timm 1.0.30
    "vit-ti-16": 5_717_416,
    "vit-s-16": 22_050_664,
    "vit-s-32": 22_878_952,
    "vit-b-16": 86_567_656,
    "vit-b-32": 88_224_232,
    "vit-l-16": 304_326_632,
    "vit-l-32": 306_535_400,
}
CONFIG = VitConfig(image=24, patch=4, width=12, depth=3, heads=3, classes=5, epsilon=1e-12)


@pytest.mark.parametrize("name", SIZES)
def test_published_sizes_have_their_published_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        model = PRESETS[name].build()
    assert sum(parameter.numel() for parameter in model.parameters()) == SIZES[name]


def picture(height: int, width: int) -> Tensor:
    rng = torch.Generator().manual_seed(2)
    return torch.randn(2, 3, height, width, generator=rng, dtype=torch.float64)


def hugging_face() -> Any:
    """A tiny ViT with every weight random, norms and biases included."""
    config = TheirConfig(
        hidden_size=12,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=48,
        image_size=24,
        patch_size=4,
        num_labels=5,
    )
    model = ViTForImageClassification(config).double().eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return model


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Vit]:
    """Theirs, and ours with its weights."""
    theirs, ours = hugging_face(), CONFIG.build().double().eval()
    path = tmp_path_factory.mktemp("vit") / "weights.pth"
    torch.save(theirs.state_dict(), path)
    assert load_pretrained(ours, path).complete
    return theirs, ours


@pytest.mark.parametrize("shape", [(24, 24), (32, 32), (16, 40), (12, 8)])
@torch.no_grad()
def test_agrees_with_hugging_face_at_every_stage_and_size(
    both: tuple[Any, Vit], shape: tuple[int, int]
) -> None:
    theirs, ours = both
    image = picture(*shape)
    expected = theirs(image, interpolate_pos_encoding=True, output_hidden_states=True)
    torch.testing.assert_close(ours(image), expected.logits)
    known = [*expected.hidden_states[1:-1], theirs.vit.layernorm(expected.hidden_states[-1])]
    for stage, tokens in enumerate(known, start=1):
        torch.testing.assert_close(ours.tokens(image, stage), tokens)
        cells = tokens[:, 1:].view(2, shape[0] // 4, shape[1] // 4, 12)
        torch.testing.assert_close(ours.grid(image, stage), cells.permute(0, 3, 1, 2))
    torch.testing.assert_close(ours.pooled(image), known[-1][:, 0])


@torch.no_grad()
def test_without_positions_the_order_of_the_patches_does_not_matter(both: tuple[Any, Vit]) -> None:
    model = CONFIG.build().double().eval()
    model.load_state_dict(both[1].state_dict())
    model.positions.zero_()
    image = picture(24, 24)
    grid = model.grid(image)
    torch.testing.assert_close(model.grid(image.roll(8, dims=3)), grid.roll(2, dims=3))
    torch.testing.assert_close(model.pooled(image.roll(4, dims=2)), model.pooled(image))
    model.positions.copy_(both[1].positions)
    assert not torch.allclose(model.pooled(image.roll(4, dims=2)), model.pooled(image))


@pytest.mark.parametrize(("height", "width"), [(24, 24), (16, 32)])
def test_looking_gives_weights_that_sum_to_one_over_the_grid_of_this_picture(
    both: tuple[Any, Vit], height: int, width: int
) -> None:
    model, image = both[1], picture(height, width)
    with torch.no_grad(), looking(model) as trace:
        watched = model(image)
    assert torch.equal(watched, model(image))
    assert list(trace) == ["encoder.0.self", "encoder.1.self", "encoder.2.self"]
    axis = Axis("image", "grid", height // 4, width // 4, special=1, pixels=4.0)
    tokens = axis.height * axis.width + axis.special
    for name, weights in trace.weights().items():
        assert trace.axes[name] == (axis, axis)
        assert weights.shape == (2, 3, tokens, tokens)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))


def test_what_is_seen_is_what_hugging_face_weighs(both: tuple[Any, Vit]) -> None:
    theirs, ours = both
    theirs.set_attn_implementation("eager")
    with torch.no_grad(), looking(ours) as trace:
        ours(picture(24, 24))
        expected = theirs(picture(24, 24), output_attentions=True).attentions
    for weights, seen in zip(expected, trace.weights().values()):
        torch.testing.assert_close(seen.to(weights), weights, atol=1e-6, rtol=1e-5)


def test_a_trace_starts_with_the_grid_that_was_learnt() -> None:
    learnt = Axis("image", "grid", 6, 6, special=1, pixels=4.0)
    assert {site.rows for site in sites(CONFIG.build()).values()} == {learnt}


def test_one_batch_is_learnt_by_heart() -> None:
    torch.manual_seed(0)
    model = CONFIG.build().double()
    image, label = picture(24, 24), torch.tensor([1, 4])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(40):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_picture_that_patches_do_not_tile_is_refused() -> None:
    with pytest.raises(ConfigError, match="25×24 pixels does not divide into patches of 4"):
        CONFIG.build()(torch.zeros(1, 3, 25, 24))


def test_a_fresh_one_looks_more_at_what_is_beside_it_than_at_what_is_far() -> None:
    torch.manual_seed(0)
    model = PRESETS["vit-nano"].build()
    with looking(model) as trace:
        model(torch.zeros(1, 3, 64, 64))
    seen = trace.weights()["encoder.0.self"][0].mean(dim=0)[1:, 1:]  # patch to patch
    places = torch.cartesian_prod(torch.arange(8.0), torch.arange(8.0))
    far = torch.cdist(places, places)
    near, beside, away = (seen[where].mean() for where in (far == 0, far == 1, far > 4))
    assert near > 1.2 * beside > 3 * away
