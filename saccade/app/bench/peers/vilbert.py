"""ViLBERT as one writes it with torch's own layers: padded, and masked where nothing is."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.vilbert import Vilbert


class PlainCoAttention(nn.Module):
    """One stream looks at the other, then thinks alone."""

    def __init__(self, config: VilbertConfig, width: int, of: int, hidden: int) -> None:
        super().__init__()
        inner, epsilon = config.join_width, config.text.epsilon
        self.heads = config.join_heads
        self.query = nn.Linear(width, inner)
        self.key, self.value = nn.Linear(of, inner), nn.Linear(of, inner)
        self.output = nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, epsilon), nn.LayerNorm(width, epsilon)
        self.linear1, self.linear2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        y: Float[Tensor, "B S E"],
        there: Bool[Tensor, "B S"] | None,
    ) -> Float[Tensor, "B T D"]:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(x), self.key(y), self.value(y))
        )
        mask = None if there is None else there[:, None, None]
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + self.output(heads.transpose(1, 2).flatten(2)))
        return self.norm2(x + self.linear2(F.gelu(self.linear1(x))))


class PlainVilbert(nn.Module):
    """Both streams, one vector for both, and the heads of pre-training."""

    def __init__(self, config: VilbertConfig, features: int) -> None:
        super().__init__()
        self.config, epsilon, joint = config, config.text.epsilon, config.join_width
        width, other = config.width, config.region_width
        self.tokens = nn.Embedding(config.vocabulary, width)
        self.places = nn.Embedding(config.longest, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, epsilon)
        self.shows, self.lies = nn.Linear(features, other), nn.Linear(5, other)
        self.region_norm = nn.LayerNorm(other, epsilon)
        sizes = width, config.heads, config.hidden, config.depth
        self.words = self._layers(*sizes)
        sizes = other, config.region_heads, config.region_hidden, config.region_depth
        self.regions = self._layers(*sizes)
        self.to_words = nn.ModuleList(
            PlainCoAttention(config, width, other, config.hidden) for _ in range(config.joins)
        )
        self.to_regions = nn.ModuleList(
            PlainCoAttention(config, other, width, config.region_hidden)
            for _ in range(config.joins)
        )
        self.pool_words, self.pool_regions = nn.Linear(width, joint), nn.Linear(other, joint)
        self.fit = nn.Linear(joint, 1)
        self.fill = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width, epsilon))
        self.word_bias = nn.Parameter(torch.zeros(config.vocabulary))
        told = config.region_classes or features
        self.tells = nn.Sequential(
            nn.Linear(other, other),
            nn.GELU(),
            nn.LayerNorm(other, epsilon),
            nn.Linear(other, told),
        )

    def _layers(self, width: int, heads: int, hidden: int, depth: int) -> nn.ModuleList:
        """Each is nn.MultiheadAttention and an MLP, with a norm after either."""
        return nn.ModuleList(
            nn.TransformerEncoderLayer(
                width,
                heads,
                hidden,
                dropout=0.0,
                activation="gelu",
                layer_norm_eps=self.config.text.epsilon,
                batch_first=True,
            )
            for _ in range(depth)
        )

    def alone(
        self,
        tokens: Int[Tensor, "B T"],
        types: Int[Tensor, "B T"],
        real: Bool[Tensor, "B T"],
        features: Float[Tensor, "I R F"],
        boxes: Float[Tensor, "I R 4"],
        there: Bool[Tensor, "I R"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "I R E"]]:
        """Both streams up to where they meet; `there` says which regions are no padding."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.tokens(tokens) + self.places(places) + self.types(types))
        sides = boxes[..., 2:] - boxes[..., :2]
        lies = torch.cat([boxes, sides[..., :1] * sides[..., 1:]], dim=-1)
        y = self.region_norm(self.shows(features) + self.lies(lies.to(features)))
        joins = self.config.joins
        for layer in self.words[: len(self.words) - joins]:
            x = layer(x, src_key_padding_mask=~real)
        for layer in self.regions[: len(self.regions) - joins]:
            y = layer(y, src_key_padding_mask=None if there is None else ~there)
        return x, y

    def joined(
        self,
        x: Float[Tensor, "B T D"],
        y: Float[Tensor, "B R E"],
        real: Bool[Tensor, "B T"],
        there: Bool[Tensor, "B R"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B R E"]]:
        """They meet, then go on by themselves; again."""
        joins, none = self.config.joins, None if there is None else ~there
        for meet, back, words, regions in zip(
            self.to_words, self.to_regions, self.words[-joins:], self.regions[-joins:]
        ):
            x, y = meet(x, y, there), back(y, x, real)
            x = words(x, src_key_padding_mask=~real)
            y = regions(y, src_key_padding_mask=none)
        return x, y

    def pooled(self, x: Float[Tensor, "B T D"], y: Float[Tensor, "B R E"]) -> Float[Tensor, "B J"]:
        return F.relu(self.pool_words(x[:, 0])) * F.relu(self.pool_regions(y[:, 0]))

    def fits(self, x: Float[Tensor, "B T D"], y: Float[Tensor, "B R E"]) -> Float[Tensor, " B"]:
        return self.fit(self.pooled(x, y))[:, 0]

    def word_scores(self, hidden: Float[Tensor, "n D"]) -> Float[Tensor, "n V"]:
        return F.linear(self.fill(hidden), self.tokens.weight, self.word_bias)


class PlainPretraining(nn.Module):
    """Its mean loss: hidden words, hidden regions, and whether a text fits."""

    def __init__(self, model: PlainVilbert) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        types: Int[Tensor, "B T"],
        real: Bool[Tensor, "B T"],
        features: Float[Tensor, "B R F"],
        boxes: Float[Tensor, "B R 4"],
        at: Int[Tensor, " n"],
        labels: Int[Tensor, " n"],
        chosen: Bool[Tensor, "B R"],
        emptied: Bool[Tensor, "B R"],
        kinds: Int[Tensor, "B R"],
        other: Int[Tensor, " B"],
    ) -> Float[Tensor, ""]:
        """`at` are the hidden words, counted row by row; `other` is a wrong image of each text."""
        shown = features.masked_fill(emptied[..., None], 0.0)
        apart = self.model.alone(tokens, types, real, shown, boxes)
        x, y = self.model.joined(*apart, real)
        z = self.model.word_scores(x.flatten(0, 1)[at])
        words = F.cross_entropy(z.float(), labels)
        told = self.model.tells(y).float().flatten(0, 1)
        each = F.cross_entropy(told, kinds.flatten(), reduction="none").view(chosen.shape)
        regions = (each * chosen).sum() / chosen.sum().clamp_min(1)
        wrong = self.model.fits(*self.model.joined(apart[0], apart[1][other], real)).float()
        right = self.model.fits(x, y).float()
        fit = (F.softplus(-right).mean() + F.softplus(wrong).mean()) / 2
        return words + regions + fit


@torch.no_grad()
def copy_weights(ours: Vilbert, theirs: PlainVilbert) -> None:
    """Make theirs compute what ours does."""
    state, found = ours.state_dict(), dict[str, Tensor]()
    for name, part in NAMES.items():
        for leaf in ("weight", "bias"):
            if f"{name}.{leaf}" in state:
                found[f"{part}.{leaf}"] = state[f"{name}.{leaf}"]
    found["places.weight"] = state["embeddings.positions.table"]
    if "words.bias" in state:
        found["word_bias"] = state["words.bias"]
    for stream, layers in (("encoder", "words"), ("region_encoder", "regions")):
        depth = len(theirs.get_submodule(layers).state_dict()) // 12
        for i in range(depth):
            found |= _layer(state, f"{stream}.{i}.", f"{layers}.{i}.")
    for i in range(theirs.config.joins):
        for stream in ("words", "regions"):
            found |= _crossing(state, f"joins.{i}.{stream}.", f"to_{stream}.{i}.")
    missing = theirs.state_dict().keys() - found.keys()
    head = ("fit.", "fill.", "word_bias", "tells.")  # which ours may be built without
    assert all(name.startswith(head) for name in missing), f"nothing of ours is called {missing}"
    theirs.load_state_dict(found, strict=False)


NAMES = {
    "embeddings.words": "tokens",
    "embeddings.types": "types",
    "embeddings.norm": "norm",
    "region_input.shows": "shows",
    "region_input.lies": "lies",
    "region_input.norm": "region_norm",
    "pool_words": "pool_words",
    "pool_regions": "pool_regions",
    "fit": "fit",
    "words.dense": "fill.0",
    "words.norm": "fill.2",
    "tells.dense": "tells.0",
    "tells.norm": "tells.2",
    "tells.told": "tells.3",
}
LAYER = {
    "self_attention.to_output": "self_attn.out_proj",
    "around_attention.norm": "norm1",
    "mlp.widen": "linear1",
    "mlp.narrow": "linear2",
    "around_mlp.norm": "norm2",
}
CROSSING = {
    "cross_attention.to_q": "query",
    "cross_attention.to_k": "key",
    "cross_attention.to_v": "value",
    "cross_attention.to_output": "output",
    "around_cross.norm": "norm1",
    "mlp.widen": "linear1",
    "mlp.narrow": "linear2",
    "around_mlp.norm": "norm2",
}


def _layer(state: dict[str, Tensor], ours: str, theirs: str) -> dict[str, Tensor]:
    found = _named(state, ours, theirs, LAYER)
    for leaf in ("weight", "bias"):
        parts = [state[f"{ours}self_attention.to_{x}.{leaf}"] for x in "qkv"]
        found[f"{theirs}self_attn.in_proj_{leaf}"] = torch.cat(parts)
    return found


def _crossing(state: dict[str, Tensor], ours: str, theirs: str) -> dict[str, Tensor]:
    return _named(state, ours, theirs, CROSSING)


def _named(
    state: dict[str, Tensor], ours: str, theirs: str, names: dict[str, str]
) -> dict[str, Tensor]:
    return {
        f"{theirs}{part}.{leaf}": state[f"{ours}{name}.{leaf}"]
        for name, part in names.items()
        for leaf in ("weight", "bias")
    }
