"""Any module of torch can be looked into, and computes what it always does."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade
from saccade.attention.axes import SOURCE, TARGET, Axis
from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import Trace
from saccade.attention.multihead import MultiHeadAttention
from saccade.errors import ConfigError

pytestmark = [
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
    pytest.mark.filterwarnings("ignore:.torch.jit.trace"),
    pytest.mark.filterwarnings("ignore:flex_attention called without"),
]
WIDTH, HEADS = 16, 4
SIZES: dict[str, Any] = {"dim_feedforward": 16, "dropout": 0.0, "batch_first": True}


def x(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape or (2, 5, WIDTH), generator=torch.Generator().manual_seed(seed))


class TimmAttention(nn.Module):
    """As timm writes it, fused or not."""

    def __init__(self, *, fused: bool) -> None:
        super().__init__()
        self.num_heads, self.fused_attn = HEADS, fused
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.attn_drop = nn.Dropout(0.5)
        self.q_norm = nn.LayerNorm(WIDTH // HEADS)

    def forward(self, x: Tensor) -> Tensor:
        batch, size, width = x.shape
        qkv = self.qkv(x).reshape(batch, size, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q = self.q_norm(q)
        if self.fused_attn:
            dropout = self.attn_drop.p if self.training else 0.0
            x = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        else:
            x = self.attn_drop((q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1)) @ v
        return self.proj(x.transpose(1, 2).reshape(batch, size, width))


class Block(nn.Module):
    def __init__(self, mix: nn.Module) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(WIDTH), mix

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attn(self.norm1(x))


class PatchEmbed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.grid_size = (2, 3)
        self.proj = nn.Conv2d(3, WIDTH, 4, stride=4)

    def forward(self, image: Tensor) -> Tensor:
        return self.proj(image).flatten(2).transpose(1, 2)


class TimmVit(nn.Module):
    """As timm's VisionTransformer, with a class token and two registers."""

    def __init__(self, *, fused: bool) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.reg_token = nn.Parameter(torch.zeros(1, 2, WIDTH))
        self.blocks = nn.Sequential(*(Block(TimmAttention(fused=fused)) for _ in range(2)))

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch_embed(image)
        first = torch.cat([self.cls_token, self.reg_token], dim=1).expand(len(x), -1, -1)
        return self.blocks(torch.cat([first, x], dim=1))


class Mixer(nn.Module):
    """Calls itself nothing in particular; its softmax may be a module of its own."""

    def __init__(self, weigh: Callable[[Tensor], Tensor], *, einsum: bool = False) -> None:
        super().__init__()
        self.to_qkv, self.einsum = nn.Linear(WIDTH, 3 * WIDTH), einsum
        self.gate, self.weigh = nn.Linear(WIDTH, 3), weigh

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.to_qkv(x).unflatten(-1, (HEADS, -1)).transpose(1, 2).chunk(3, dim=-1)
        gate = self.gate(x).softmax(dim=-1).sum(dim=-1, keepdim=True)
        if self.einsum:
            weights = self.weigh(torch.einsum("bhtk,bhsk->bhts", q, k))
            heads = torch.einsum("bhts,bhsk->bhtk", weights, v)
        else:
            heads = self.weigh(q @ k.mT) @ v
        return gate * heads.transpose(1, 2).flatten(2)


def mha(**settings: Any) -> nn.MultiheadAttention:
    return nn.MultiheadAttention(WIDTH, HEADS, **{"batch_first": True, **settings})


class Asking(nn.Module):
    """Asks torch's attention in one of its many ways."""

    def __init__(self, module: nn.MultiheadAttention, **how: Any) -> None:
        super().__init__()
        self.inner, self.how = module, how

    def forward(self, x: Tensor) -> Any:
        return self.inner(x, x, x, **self.how)[0]


def encoder(**settings: Any) -> nn.TransformerEncoder:
    return nn.TransformerEncoder(
        nn.TransformerEncoderLayer(WIDTH, HEADS, **SIZES), 2, norm=nn.LayerNorm(WIDTH), **settings
    )


PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
FUTURE = torch.ones(5, 5, dtype=torch.bool).triu(1)
BIAS = x(5, 5, seed=9)
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...], dict[str, Any]]] = {
    "mha": (lambda: Asking(mha()), (x(),), {}),
    "mha without weights": (lambda: Asking(mha(), need_weights=False), (x(),), {}),
    "mha, time first": (lambda: Asking(mha(batch_first=False)), (x(),), {}),
    "mha, padding": (lambda: Asking(mha(), key_padding_mask=PADDING), (x(),), {}),
    "mha, future": (
        lambda: Asking(mha(), attn_mask=FUTURE, is_causal=True, need_weights=False), (x(),), {}
    ),
    "mha, both": (
        lambda: Asking(mha(), attn_mask=FUTURE, key_padding_mask=PADDING, need_weights=False),
        (x(),), {},
    ),
    "mha, float mask": (lambda: Asking(mha(), attn_mask=BIAS, need_weights=False), (x(),), {}),
    "mha, more keys": (lambda: Asking(mha(add_bias_kv=True, add_zero_attn=True)), (x(),), {}),
    "mha, one line": (lambda: Asking(mha(), need_weights=False), (x(5, WIDTH),), {}),
    "encoder": (encoder, (x(),), {}),
    "encoder, padding": (encoder, (x(),), {"src_key_padding_mask": PADDING}),
    "encoder, mask": (encoder, (x(),), {"mask": FUTURE}),
    "encoder, not nested": (
        lambda: encoder(enable_nested_tensor=False), (x(),), {"src_key_padding_mask": PADDING}
    ),
    "layer": (lambda: nn.TransformerEncoderLayer(WIDTH, HEADS, **SIZES), (x(),), {}),
    "transformer": (
        lambda: nn.Transformer(WIDTH, HEADS, 2, 2, **SIZES), (x(), x(2, 3, WIDTH, seed=1)),
        {"src_key_padding_mask": PADDING, "memory_key_padding_mask": PADDING},
    ),
    "timm, fused": (lambda: TimmVit(fused=True), (x(2, 3, 8, 12),), {}),
    "timm, unfused": (lambda: TimmVit(fused=False), (x(2, 3, 8, 12),), {}),
    "softmax": (lambda: Mixer(nn.Softmax(dim=-1)), (x(),), {}),
    "einsum": (lambda: Mixer(lambda e: F.softmax(e, dim=-1), einsum=True), (x(),), {}),
}  # fmt: skip


def built(name: str) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    make, args, kwargs = MODULES[name]
    torch.manual_seed(0)
    return make().eval(), args, kwargs


@pytest.mark.parametrize("name", MODULES)
def test_the_output_is_what_it_is_when_nobody_looks(name: str) -> None:
    model, args, kwargs = built(name)
    with torch.no_grad():
        alone = model(*args, **kwargs)
        with saccade.looking(model) as trace:
            during = model(*args, **kwargs)
        assert torch.equal(during, alone)
        assert torch.equal(model(*args, **kwargs), alone)
    with torch.autocast("cpu", torch.bfloat16):  # with gradients: torch's own nested path fails
        alone = model(*args, **kwargs)
        with saccade.looking(model):
            assert torch.equal(model(*args, **kwargs), alone)
    assert all(len(trace.calls(site)) == 1 for site in trace)
    for site, weights in trace.weights().items():
        seeing = (trace[site].where >= 0).float()
        torch.testing.assert_close(weights.sum(dim=-1), seeing)
        assert seeing[:, :, :3].all()  # none but the padding looks nowhere


@pytest.mark.parametrize("name", MODULES)
def test_training_draws_the_same_chances_and_gets_the_same_gradients(name: str) -> None:
    def gradients(*, look: bool) -> list[Tensor]:
        model, args, kwargs = built(name)
        model.train()
        torch.manual_seed(1)
        if look:
            with saccade.looking(model):
                model(*args, **kwargs).square().sum().backward()
        else:
            model(*args, **kwargs).square().sum().backward()
        return [p.grad for p in model.parameters() if p.grad is not None] + [torch.rand(3)]

    assert all(map(torch.equal, gradients(look=False), gradients(look=True)))


def traced(model: nn.Module, *args: Any, **kwargs: Any) -> Trace:
    with torch.no_grad(), saccade.looking(model) as trace:
        model(*args, **kwargs)
    return trace


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("mha")])
def test_torchs_own_attention_looks_where_it_says(name: str) -> None:
    model, args, _ = built(name)
    assert isinstance(model, Asking)
    how = {**model.how, "need_weights": True, "average_attn_weights": False, "is_causal": False}
    expected = model.inner(*args, *args, *args, **how)[1]
    (weights,) = traced(model, *args).weights().values()
    tokens = ~model.how.get("key_padding_mask", torch.zeros(1, 1, dtype=torch.bool))
    torch.testing.assert_close(weights, expected.view(weights.shape) * tokens[:, None, :, None])


def test_the_fast_path_looks_where_the_slow_one_does() -> None:
    model, args, kwargs = built("encoder, padding")
    fast = traced(model, *args, **kwargs).weights()
    with saccade.looking(model) as trace:  # with gradients there is no fast path
        model(*args, **kwargs)
    assert list(fast) == list(trace) == ["layers.0.self", "layers.1.self"]
    for one, other in zip(fast.values(), trace.weights().values()):
        real = ~PADDING[:, None, :, None]
        torch.testing.assert_close(one * real, other * real)
        assert one[1, :, :, 3:].eq(0).all()


def test_timm_fused_and_not_look_alike_and_know_their_patches() -> None:
    fused, image, _ = built("timm, fused")
    plain, _, _ = built("timm, unfused")
    plain.load_state_dict(fused.state_dict())
    one, other = traced(fused, *image), traced(plain, *image)
    assert list(one) == list(other) == ["layers.0.self", "layers.1.self"]
    for site in one:
        torch.testing.assert_close(one.weights()[site], other.weights()[site])
        assert one.axes[site] == (Axis("image", "grid", 2, 3, 3),) * 2


def test_a_softmax_between_two_products_is_attention_whoever_runs_it() -> None:
    model, args, _ = built("softmax")
    q, k, _ = model.to_qkv(*args).unflatten(-1, (HEADS, -1)).transpose(1, 2).chunk(3, dim=-1)
    trace = traced(nn.Sequential(model, model), *args)
    assert list(trace) == ["layers.0.self", "layers.0~2.self"]
    torch.testing.assert_close(trace["layers.0.self"].weights, (q @ k.mT).softmax(dim=-1))


def test_a_transformer_of_torch_has_a_source_and_a_target() -> None:
    model, args, kwargs = built("transformer")
    trace = traced(nn.ModuleDict({"inner": model})["inner"], *args, **kwargs)
    assert trace.axes["encoder.1.self"] == (SOURCE, SOURCE)
    assert trace.axes["decoder.1.self"] == (TARGET, TARGET)
    assert trace.axes["decoder.1.cross"] == (TARGET, SOURCE)
    assert len(trace) == 6


def test_masks_of_torch_mean_may_not_and_are_said_shortly() -> None:
    model, args, _ = built("mha, both")
    with torch.no_grad(), saccade.looking(model, keep=Keep(zoom=True)) as trace:
        model(*args)
    ((glance,),) = [trace.calls(site) for site in trace]
    assert glance.zoom is not None
    assert (glance.causal, glance.zoom.bias) == (True, None)
    assert glance.zoom.mask is not None
    assert torch.equal(glance.zoom.mask[:, 0, 0], ~PADDING)


def test_long_inputs_are_seen_without_their_weights() -> None:
    model, line = encoder().eval(), x(1, 300, WIDTH)
    with torch.no_grad(), saccade.looking(model, keep=Keep(dense=400)) as dense:
        model(line)
    with torch.no_grad(), saccade.looking(model, keep=Keep(dense=0)) as sparse:
        model(line)
    for site in dense:
        torch.testing.assert_close(sparse[site].entropy, dense[site].entropy, atol=1e-4, rtol=0)
        assert sparse[site].weights is None


def test_ours_and_others_in_one_module_are_all_seen() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ours, self.theirs = MultiHeadAttention(WIDTH, heads=2), mha()

        def forward(self, x: Tensor) -> Tensor:
            return self.theirs(self.ours(x, x), x, x)[0]

    model = Mixed()
    assert set(traced(model, x())) == {"ours", "theirs.self"}
    with torch.no_grad(), saccade.looking(model, only="ours") as trace:
        model(x())
    assert list(trace) == ["ours"]


class LinearAttention(nn.Module):
    """No softmax over keys: there are no weights."""

    def __init__(self) -> None:
        super().__init__()
        self.to_q = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q = F.elu(self.to_q(x)) + 1
        return q @ (q.mT @ x)


class FlexAttention(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        from torch.nn.attention.flex_attention import flex_attention

        q = x.unflatten(-1, (1, -1)).transpose(1, 2)
        found = flex_attention(q, q, q)
        assert isinstance(found, Tensor)
        return found.transpose(1, 2).flatten(2)


def test_what_has_no_weights_is_named() -> None:
    linear, line = LinearAttention(), x()
    with pytest.raises(ConfigError, match=r"ran, but layers\.0\.self \(LinearAttention\) calls"):
        traced(nn.Sequential(linear), line)
    with pytest.warns(UserWarning, match=r"to show: layers\.0\.self \(LinearAttention\) calls"):
        traced(nn.Sequential(linear, TimmAttention(fused=True)), line)
    with pytest.raises(ConfigError, match="Linear has no attention to look at"):
        traced(nn.Linear(WIDTH, WIDTH), line)
    with pytest.raises(ConfigError, match="Block ran, but none of its modules attends"):
        traced(Block(nn.Linear(WIDTH, WIDTH)), line)
    model = nn.Sequential(torch.compile(TimmAttention(fused=True), backend="eager"))
    with pytest.raises(ConfigError, match=r"its module 0 \(OptimizedModule\) is compiled"):
        traced(model, line)
    scripted = torch.jit.trace(nn.Linear(WIDTH, WIDTH), line)
    with pytest.raises(ConfigError, match=r"its module 1 \(.*\) is compiled by torch.jit"):
        traced(nn.Sequential(TimmAttention(fused=True), scripted), line)
    told = pytest.raises(ConfigError, match=r"no site of Mixer .* there are: layers\.self")
    with told, saccade.looking(mixer := Mixer(nn.Softmax(dim=-1)), only="cross"):
        mixer(line)


def test_a_kernel_that_compiles_itself_runs_and_is_named() -> None:
    line, flex = x(1, 8, WIDTH), FlexAttention()
    alone = flex(line)
    model = nn.Sequential(flex, TimmAttention(fused=True).eval())
    with pytest.warns(UserWarning, match=r"layers\.0\.self \(FlexAttention\) calls neither"):
        traced(model, line)
    with torch.no_grad(), pytest.raises(ConfigError), saccade.looking(flex):
        assert torch.equal(flex(line), alone)


def test_nested_tensors_pass_and_are_not_seen() -> None:
    model = encoder().eval()
    lines = torch.nested.nested_tensor([x(5, WIDTH), x(3, WIDTH)])
    with torch.no_grad():
        alone = model(lines).to_padded_tensor(0.0)
        with pytest.raises(ConfigError, match="Encoder ran, but"), saccade.looking(model):
            assert torch.equal(model(lines).to_padded_tensor(0.0), alone)


def test_other_threads_are_not_seen() -> None:
    model, (line,), _ = built("timm, fused")
    with torch.no_grad(), saccade.looking(model) as trace, ThreadPoolExecutor(4) as pool:
        alone = model(line)
        outputs = list(pool.map(lambda _: model(2 * line), range(8)))
    assert all(torch.equal(one, outputs[0]) for one in outputs)
    assert {site: len(trace.calls(site)) for site in trace} == dict.fromkeys(
        ["layers.0.self", "layers.1.self"], 1
    )
    message = "^TimmVit ran in another thread than the one that looks, and only this one is seen; "
    with (
        pytest.raises(ConfigError, match=message),
        saccade.looking(model),
        ThreadPoolExecutor(1) as pool,
    ):
        assert not torch.equal(pool.submit(model, 2 * line).result(), alone)


def test_two_looks_at_once_see_the_same_also_on_the_fast_path() -> None:
    model, args, kwargs = built("encoder, padding")
    with torch.no_grad(), saccade.looking(model) as outer, saccade.looking(model) as inner:
        during = model(*args, **kwargs)
    with torch.no_grad():
        assert torch.equal(during, model(*args, **kwargs))
    assert list(outer) == list(inner) == ["layers.0.self", "layers.1.self"]
    for site in outer:
        assert len(outer.calls(site)) == len(inner.calls(site)) == 1
        torch.testing.assert_close(outer.weights()[site], inner.weights()[site])
    assert math.isclose(float(outer["layers.0.self"].weights[0, 0].sum()), 5.0, rel_tol=1e-5)
