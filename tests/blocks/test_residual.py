"""Where the norm stands, and which norm depends on whom."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from saccade.blocks.residual import NORMS, PostNorm, PreNorm, Residual


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


X = randn(2, 3, 4, seed=0)


def normal(x: Tensor) -> Tensor:
    """LayerNorm before its gain and bias, from its definition."""
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (centred.pow(2).mean(dim=-1, keepdim=True) + 1e-5).sqrt()


def around(residual: Residual, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    total, x = residual.double().before(x)
    return residual.after(total, sublayer(x), nn.Identity())[0]


def test_post_norm_adds_then_normalises() -> None:
    torch.testing.assert_close(around(PostNorm(4, dropout=0.0), X, torch.sin), normal(X + X.sin()))


def test_pre_norm_normalises_then_adds() -> None:
    torch.testing.assert_close(around(PreNorm(4, dropout=0.0), X, torch.sin), X + normal(X).sin())


def test_pre_norm_hands_its_input_down_untouched_when_the_sublayer_is_silent() -> None:
    assert torch.equal(around(PreNorm(4, dropout=0.0), X, torch.zeros_like), X)


def test_dropout_falls_on_the_sublayer_alone() -> None:
    layer = PreNorm(4, dropout=0.5)
    torch.manual_seed(0)
    added = around(layer, X, torch.ones_like) - X
    torch.testing.assert_close(added, added.round())  # 0, or 1 / (1 - 0.5)
    assert set(added.round().unique().tolist()) == {0.0, 2.0}


def test_batch_norm_makes_a_row_depend_on_its_batch_mates() -> None:
    norm = NORMS["batch"](4).double()
    changed = torch.cat([X[:1], X[1:] + 5 * randn(1, 3, 4, seed=1)])
    assert not torch.allclose(norm(X)[0], norm(changed)[0])


def test_layer_norm_leaves_a_row_to_itself() -> None:
    norm = NORMS["layer"](4).double()
    changed = torch.cat([X[:1], X[1:] + 5 * randn(1, 3, 4, seed=1)])
    assert torch.equal(norm(X)[0], norm(changed)[0])
    torch.testing.assert_close(norm(X), normal(X))


def test_batch_norm_makes_every_feature_of_the_batch_standard() -> None:
    y = NORMS["batch"](4).double()(X).flatten(0, 1)
    torch.testing.assert_close(y.mean(dim=0), torch.zeros(4, dtype=torch.float64))
    torch.testing.assert_close(
        y.var(dim=0, correction=0), torch.ones(4, dtype=torch.float64), rtol=1e-3, atol=0
    )
