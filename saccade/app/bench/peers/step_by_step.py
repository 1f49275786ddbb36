"""An RNN with attention as tutorials write it: a loop in Python, one word after another.

Each step embeds a word, projects the query and all keys, attends, runs the cell and reads out. The
numbers are those of our model, so losses and words must be the same.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from saccade.app.bench.sentences import PAD, START
from saccade.blocks.recurrent.rnn import CELLS
from saccade.models.text.rnn_attention import RnnAttention, RnnAttentionConfig

Hidden = Tensor | tuple[Tensor, Tensor]  # (1, B, D) each; an LSTM has a cell besides


class TutorialAttention(nn.Module):
    """c = Σᵢ aᵢ hᵢ        a = softmax(wᵀ tanh(U s + V hᵢ))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_query = nn.Linear(width, width)
        self.of_key = nn.Linear(width, width, bias=False)
        self.weight = nn.Linear(width, 1, bias=False)

    def forward(
        self,
        query: Float[Tensor, "B 1 D"],
        memory: Float[Tensor, "B S D"],
        real: Bool[Tensor, "B S"],
    ) -> Float[Tensor, "B 1 D"]:
        scores = self.weight(torch.tanh(self.of_query(query) + self.of_key(memory)))  # (B, S, 1)
        scores = scores.squeeze(2).masked_fill(~real, -torch.inf)
        return torch.bmm(F.softmax(scores, dim=-1)[:, None], memory)


class StepByStep(nn.Module):
    """Encoder, and a decoder that is called once for each word."""

    def __init__(self, config: RnnAttentionConfig) -> None:
        super().__init__()
        width, cell = config.width, CELLS[config.cell]
        self.early = config.context == "input"  # attend before the cell, as Bahdanau does
        self.source_embedding = nn.Embedding(config.vocabulary, width)
        self.target_embedding = nn.Embedding(config.vocabulary, width)
        self.encoder = cell(width, width // 2, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(width, width)
        self.attention = TutorialAttention(width)
        self.rnn = cell(2 * width if self.early else width, width, batch_first=True)
        self.mix = nn.Linear((3 if self.early else 2) * width, width)
        self.readout = nn.Linear(width, config.vocabulary)

    def forward(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"], labels: Int[Tensor, "B T"]
    ) -> Float[Tensor, ""]:
        """The mean loss, teacher-forced."""
        memory, real, hidden = self._encode(source)
        outputs: list[Tensor] = []
        for t in range(target.shape[1]):
            logits, hidden = self._step(target[:, t : t + 1], hidden, memory, real)
            outputs.append(logits)
        logits = torch.cat(outputs, dim=1)  # (B, T, V)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)

    @torch.no_grad()
    def translate(self, source: Int[Tensor, "B S"], steps: int) -> Int[Tensor, "B T"]:
        """Greedily, each word fed back."""
        memory, real, hidden = self._encode(source)
        word = source.new_full((len(source), 1), START)
        words: list[Tensor] = []
        for _ in range(steps):
            logits, hidden = self._step(word, hidden, memory, real)
            word = logits.topk(1).indices.squeeze(-1).detach()
            words.append(word)
        return torch.cat(words, dim=1)

    @torch.no_grad()
    def search(self, source: Int[Tensor, "B S"], steps: int, beams: int) -> Int[Tensor, "B T"]:
        """With beams that never end: each is a row, and all of a row moves when beams do."""
        memory, real, hidden = self._encode(source)
        firsts = beams * torch.arange(len(source), device=source.device)[:, None]
        rows = torch.arange(len(source), device=source.device).repeat_interleave(beams)
        memory, real, hidden = memory[rows], real[rows], _moved(hidden, rows)
        word = source.new_full((len(rows), 1), START)
        said = source.new_empty(len(rows), 0)
        log_p = torch.full((len(source), beams), -torch.inf, device=source.device)
        log_p[:, 0] = 0.0
        for _ in range(steps):
            logits, hidden = self._step(word, hidden, memory, real)
            fresh = F.log_softmax(logits[:, 0].float(), dim=-1)  # (B·k, V)
            total = log_p[:, :, None] + fresh.view(len(source), beams, -1)
            log_p, best = total.flatten(1).topk(beams)
            rows = (firsts + best // fresh.shape[1]).flatten()
            word = (best % fresh.shape[1]).view(-1, 1)
            hidden, said = _moved(hidden, rows), torch.cat([said[rows], word], dim=1)
        return said.view(len(source), beams, -1)[:, 0]

    def _encode(self, source: Int[Tensor, "B S"]) -> tuple[Tensor, Tensor, Hidden]:
        real = source != PAD
        packed = pack_padded_sequence(
            self.source_embedding(source),
            real.sum(dim=1).cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        outputs, last = self.encoder(packed)
        memory, _ = pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])
        both_ways = last[0] if isinstance(last, tuple) else last  # (2, B, D/2)
        first = self.bridge(torch.cat([both_ways[0], both_ways[1]], dim=-1)).tanh()[None]
        return memory, real, (first, torch.zeros_like(first)) if isinstance(last, tuple) else first

    def _step(
        self, word: Int[Tensor, "B 1"], hidden: Hidden, memory: Tensor, real: Tensor
    ) -> tuple[Float[Tensor, "B 1 V"], Hidden]:
        y = self.target_embedding(word)
        if self.early:
            state = hidden[0] if isinstance(hidden, tuple) else hidden
            c = self.attention(state.permute(1, 0, 2), memory, real)
            s, hidden = self.rnn(torch.cat([y, c], dim=2), hidden)
            features = self.mix(torch.cat([s, y, c], dim=2)).tanh()
        else:
            s, hidden = self.rnn(y, hidden)
            c = self.attention(s, memory, real)
            features = self.mix(torch.cat([s, c], dim=2)).tanh()
        return self.readout(features), hidden


def _moved(hidden: Hidden, rows: Int[Tensor, " R"]) -> Hidden:
    if isinstance(hidden, tuple):
        return hidden[0][:, rows], hidden[1][:, rows]
    return hidden[:, rows]


def copy_weights(ours: RnnAttention, theirs: StepByStep) -> None:
    """Make theirs compute what ours does: the same matrices under other names."""
    places = {
        "encoder.layers.": "encoder.",
        "decoder.rnn.layers.0.": "rnn.",
        "decoder.cross_attention.score.weight": "attention.weight.weight",
        "decoder.cross_attention.score.": "attention.",
        "decoder.mix.": "mix.",
    }
    weights: dict[str, Tensor] = {}
    for name, weight in ours.state_dict().items():
        here = next((place for place in places if name.startswith(place)), "")
        there = name.replace(here, places[here]) if here else name
        weights[there] = weight
    weights["attention.weight.weight"] = weights["attention.weight.weight"][None]
    theirs.load_state_dict(weights)
