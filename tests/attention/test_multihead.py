"""Many heads: against one head at a time, and against torch with the same weights."""

import pytest
import torch
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.attend import attend
from saccade.attention.axes import SOURCE, TARGET, TEXT
from saccade.attention.ladder import SelfAttention
from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import looking
from saccade.attention.multihead import MultiHeadAttention
from saccade.attention.segments import Segments
from saccade.errors import ConfigError
from tests.attention.kernels import errors, numbers, of_glance, statistics
from tests.attention.test_segments import starts

MASKS = {
    "none": None,
    "causal": masks.causal(5, 5),
    "padding": masks.padding(torch.tensor([5, 2]), 5),
    "window": masks.window(5, 5, reach=1),
}


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fresh(width: int = 8, heads: int = 2, **widths: int) -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(width, heads=heads, **widths).double()


def head_by_head(
    mha: MultiHeadAttention, x: Tensor, y: Tensor, z: Tensor, mask: Tensor | None
) -> Tensor:
    """The class's own formula, one head after another."""
    heads, size = [], mha.head_width
    for i in range(mha.heads):
        mine = slice(i * size, (i + 1) * size)
        q, k, v = (
            data @ part.weight[mine].T + part.bias[mine]
            for data, part in ((x, mha.to_q), (y, mha.to_k), (z, mha.to_v))
        )
        heads.append(attend(q, k, v, mask=None if mask is None else mask[:, 0]).output)
    return mha.to_output(torch.cat(heads, dim=-1))


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_equals_a_loop_over_heads(heads: int, mask: Tensor | None) -> None:
    mha, x, y = fresh(heads=heads), randn(2, 5, 8, seed=1), randn(2, 5, 8, seed=2)
    torch.testing.assert_close(mha(x, y, mask=mask), head_by_head(mha, x, y, y, mask))


def test_widths_of_queries_keys_and_values_are_free() -> None:
    mha = fresh(6, 3, key_width=5, value_width=7, head_width=4)
    x, y, z = randn(2, 3, 6, seed=1), randn(2, 4, 5, seed=2), randn(2, 4, 7, seed=3)
    assert mha(x, y, z).shape == (2, 3, 6)
    torch.testing.assert_close(mha(x, y, z), head_by_head(mha, x, y, z, None))


def torch_twin(mha: MultiHeadAttention, **widths: int) -> nn.MultiheadAttention:
    twin = nn.MultiheadAttention(8, mha.heads, batch_first=True, **widths).double()
    parts = (mha.to_q, mha.to_k, mha.to_v)
    with torch.no_grad():
        if widths:
            twin.q_proj_weight.copy_(mha.to_q.weight)
            twin.k_proj_weight.copy_(mha.to_k.weight)
            twin.v_proj_weight.copy_(mha.to_v.weight)
        else:
            twin.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        twin.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        twin.out_proj.load_state_dict(mha.to_output.state_dict())
    return twin.eval()


@pytest.mark.parametrize("lengths", [[6, 6], [6, 2]])
@pytest.mark.parametrize("widths", [{}, {"kdim": 5, "vdim": 7}], ids=["same", "free"])
def test_cross_attention_equals_torchs_with_the_same_weights(
    lengths: list[int], widths: dict[str, int]
) -> None:
    names = {"kdim": "key_width", "vdim": "value_width"}
    mha = fresh(8, 2, **{names[name]: width for name, width in widths.items()})
    x = randn(2, 4, 8, seed=1)
    y, z = randn(2, 6, widths.get("kdim", 8), seed=2), randn(2, 6, widths.get("vdim", 8), seed=3)
    mask = masks.padding(torch.tensor(lengths), 6)
    theirs, weights = torch_twin(mha, **widths)(
        x, y, z, key_padding_mask=~mask[:, 0, 0], average_attn_weights=False
    )
    with looking(mha) as trace:
        torch.testing.assert_close(mha(x, y, z, mask=mask), theirs)
    torch.testing.assert_close(trace.weights()[""], weights)


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_equals_torchs_with_the_same_weights(causal: bool) -> None:
    mha, x = fresh(), randn(2, 5, 8, seed=1)
    mask = masks.padding(torch.tensor([5, 3]), 5)
    theirs, _ = torch_twin(mha)(
        x,
        x,
        x,
        key_padding_mask=~mask[:, 0, 0],
        attn_mask=~masks.causal(5, 5)[0, 0] if causal else None,
    )
    torch.testing.assert_close(mha(x, x, mask=mask, causal=causal), theirs)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_looking_changes_no_bit_of_the_output(mask: Tensor | None, causal: bool) -> None:
    mha, x = fresh().float(), randn(2, 5, 8, seed=1).float()
    unwatched = mha(x, x, mask=mask, causal=causal)
    with looking(mha):
        assert torch.equal(mha(x, x, mask=mask, causal=causal), unwatched)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_looking_records_the_weights_of_attend(mask: Tensor | None, causal: bool) -> None:
    mha, x = fresh(), randn(2, 5, 8, seed=1)
    with looking(mha) as trace:
        mha(x, x, mask=mask, causal=causal)
    q, k = (part(x).unflatten(-1, (2, 4)).transpose(1, 2) for part in (mha.to_q, mha.to_k))
    seen = masks.both(mask, masks.causal(5, 5) if causal else None)
    tokens = torch.ones(2, 5) if mask is None else mask.flatten(1, 2).any(dim=1).expand(2, 5)
    expected = attend(q, k, k, mask=seen).weights * tokens[:, None, :, None]  # no padding looks
    torch.testing.assert_close(trace.weights()[""], expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_long_looks_find_the_statistics_of_the_weights_of_attend(
    dtype: torch.dtype, causal: bool
) -> None:
    mha, x = fresh().to(dtype), 3 * randn(2, 300, 8, seed=1).to(dtype)
    mask = masks.padding(torch.tensor([300, 190]), 300)
    with looking(mha) as trace:
        mha(x, x, mask=mask, causal=causal)
    q, k = (part(x).unflatten(-1, (2, 4)).transpose(1, 2) for part in (mha.to_q, mha.to_k))
    seen = masks.both(mask, masks.causal(300, 300) if causal else None)
    weights = attend(q.double(), k.double(), k.double(), mask=seen).weights
    weights[1, :, 190:] = 0  # padding looks nowhere
    gaps = errors(of_glance(trace[""]), statistics(numbers(weights), Keep()))
    received = gaps.pop("received")  # a sum over 300 queries
    assert max(gaps.values()) <= (1e-12 if dtype == torch.float64 else 1e-5)
    assert received <= (1e-11 if dtype == torch.float64 else 1e-4)
    assert trace[""].weights is None


QUERIES, KEYS = [4, 1, 3, 3, 0, 2], [2, 5, 1, 1, 3, 0]  # the last reads from nothing


def packed_and_padded(lengths: list[int], *, seed: int) -> tuple[Tensor, Tensor]:
    """The same sentences end to end, and below each other with other numbers for padding."""
    x = randn(1, sum(lengths), 8, seed=seed)
    rows = x[0].split(lengths)
    padded = randn(len(lengths), max(lengths), 8, seed=seed + 50)
    for row, sentence in zip(padded, rows):
        row[: len(sentence)] = sentence
    return x, padded


def end_to_end(padded: Tensor, lengths: list[int]) -> Tensor:
    return torch.cat([row[:length] for row, length in zip(padded, lengths)])[None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [QUERIES, [3] * 5])
def test_sentences_end_to_end_read_themselves_as_if_padded(
    lengths: list[int], causal: bool
) -> None:
    mha, (x, padded) = fresh(), packed_and_padded(lengths, seed=1)
    mask = masks.padding(torch.tensor(lengths), max(lengths))
    expected = end_to_end(mha(padded, padded, mask=mask, causal=causal), lengths)
    itself = Segments.among(starts(lengths), 16)
    torch.testing.assert_close(mha(x, x, mask=itself, causal=causal), expected)


@pytest.mark.parametrize("keys", [KEYS, QUERIES])
def test_sentences_end_to_end_read_one_another_as_if_padded(keys: list[int]) -> None:
    mha = fresh()
    (x, queries), (y, memory) = packed_and_padded(QUERIES, seed=1), packed_and_padded(keys, seed=2)
    mask = masks.padding(torch.tensor(keys), max(keys))
    expected = end_to_end(mha(queries, memory, mask=mask), QUERIES)
    across = Segments(starts(QUERIES), starts(keys), 4, 5)
    torch.testing.assert_close(mha(x, y, mask=across), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [QUERIES, [3] * 5])
def test_looking_at_sentences_end_to_end_changes_no_bit_and_shows_the_weights(
    lengths: list[int], causal: bool, dtype: torch.dtype
) -> None:
    mha, x = fresh().to(dtype), packed_and_padded(lengths, seed=1)[0].to(dtype)
    itself, total = Segments.among(starts(lengths), 16), sum(lengths)
    unwatched = mha(x, x, mask=itself, causal=causal)
    with looking(mha) as trace:
        assert mha(x, x, mask=itself, causal=causal).equal(unwatched)
    q, k = (part(x).unflatten(-1, (2, 4)).transpose(1, 2) for part in (mha.to_q, mha.to_k))
    seen = masks.both(itself.mask(total, total), masks.causal(total, total) if causal else None)
    torch.testing.assert_close(trace.weights()[""], attend(q, k, k, mask=seen).weights)


@pytest.mark.parametrize("keys", [KEYS, QUERIES])
def test_looking_across_sentences_end_to_end_changes_no_bit_and_shows_the_weights(
    keys: list[int],
) -> None:
    mha = fresh().float()
    x, y = (packed_and_padded(n, seed=i)[0].float() for i, n in enumerate((QUERIES, keys)))
    across = Segments(starts(QUERIES), starts(keys), 4, 5)
    unwatched = mha(x, y, mask=across)
    with looking(mha) as trace:
        assert mha(x, y, mask=across).equal(unwatched)
    q = mha.to_q(x).unflatten(-1, (2, 4)).transpose(1, 2)
    k = mha.to_k(y).unflatten(-1, (2, 4)).transpose(1, 2)
    mask = across.mask(x.shape[1], y.shape[1])
    torch.testing.assert_close(trace.weights()[""], attend(q, k, k, mask=mask).weights)


def test_by_itself_it_is_text_that_looks_at_text_unless_told_otherwise() -> None:
    with looking(MultiHeadAttention(8, heads=2)) as trace:
        assert trace.axes == {"": (TEXT, TEXT)}
    with looking(MultiHeadAttention(8, heads=2, rows=TARGET, columns=SOURCE)) as trace:
        assert trace.axes == {"": (TARGET, SOURCE)}


def test_looking_under_both_masks_stays_on_the_device_of_its_input() -> None:
    with torch.device("meta"):
        mha, x = MultiHeadAttention(8, heads=2), torch.empty(2, 5, 8)
        mask = masks.padding(torch.empty(2, dtype=torch.long), 5)
    with looking(mha) as trace:
        mha(x, x, mask=mask, causal=True)
    assert trace.weights()[""].device.type == "meta"


def test_one_head_without_an_output_layer_is_the_ladders_self_attention() -> None:
    mha, x = fresh(heads=1), randn(2, 5, 8, seed=1)
    plain = SelfAttention(8, key_width=8, value_width=8).double()
    with torch.no_grad():
        for name in ("to_q", "to_k", "to_v"):
            getattr(mha, name).bias.zero_()
            getattr(plain, name).weight.copy_(getattr(mha, name).weight)
        mha.to_output.weight.copy_(torch.eye(8))
        mha.to_output.bias.zero_()
    torch.testing.assert_close(mha(x, x), plain(x).output)


def test_a_width_that_heads_cannot_share_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^width=10 does not divide into heads=4$"):
        MultiHeadAttention(10, heads=4)


def test_any_width_will_do_when_the_head_width_is_given() -> None:
    assert MultiHeadAttention(10, heads=4, head_width=3)(*[torch.ones(1, 2, 10)] * 2).shape[2] == 10
