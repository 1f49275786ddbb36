"""A GPT as small training scripts write it: one product for q, k and v, fused or by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade

WIDTH, HEADS, LONGEST, WORDS = 16, 4, 12, 30


class CausalSelfAttention(nn.Module):
    """By the kernel, or by a mask of its own, a softmax and a product."""

    def __init__(self, *, flash: bool) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.flash = flash
        self.register_buffer("seen", torch.ones(LONGEST, LONGEST).tril()[None, None])

    def heads(self, x: Tensor) -> list[Tensor]:
        three = self.c_attn(x).split(WIDTH, dim=2)
        return [one.unflatten(2, (HEADS, -1)).transpose(1, 2) for one in three]

    def weigh(self, q: Tensor, k: Tensor) -> Tensor:
        size = q.shape[2]
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        return F.softmax(scores.masked_fill(self.seen[:, :, :size, :size] == 0, -torch.inf), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(x)
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = self.weigh(q, k) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(x.shape))


class GptBlock(nn.Module):
    def __init__(self, *, flash: bool) -> None:
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH), CausalSelfAttention(flash=flash)
        self.ln_2, self.mlp = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGpt(nn.Module):
    def __init__(self, *, flash: bool) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.h = nn.ModuleList(GptBlock(flash=flash) for _ in range(2))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return x @ self.wte.weight.T


@pytest.mark.parametrize("flash", [True, False])
@torch.no_grad()
def test_what_is_seen_is_what_its_formula_weighs(flash: bool) -> None:
    torch.manual_seed(0)
    model, tokens = NanoGpt(flash=flash), torch.randint(WORDS, (3, 9))
    before, inputs = model(tokens), list[Tensor]()
    hooks = [
        block.attn.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
        for block in model.h
    ]
    with saccade.looking(model) as trace:
        assert torch.equal(model(tokens), before)
    for hook in hooks:
        hook.remove()
    seen = trace.weights()
    assert len(seen) == len(inputs) == 2
    for block, x, weights in zip(model.h, inputs, seen.values(), strict=True):
        q, k, _ = block.attn.heads(x)
        torch.testing.assert_close(weights, block.attn.weigh(q, k), rtol=0, atol=1e-6)
