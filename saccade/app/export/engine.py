"""CTranslate2 in place of our own decoding: the same beginnings are kept, the same text comes out.

Its beam search keeps what ours keeps, but counts differently at the end. It divides by lengthᵅ
where we divide by ((5 + length) / 6)ᵅ, and stops at a number of endings where we stop when no live
beginning would beat the worst of them. So it is asked for more endings than the beam is wide, tells
log-probabilities, and the ranking is ours. docs/export.md says where that may differ.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from saccade.app.export.folder import require
from saccade.data.batching.batches import Batches
from saccade.decode.beam import Beam
from saccade.decode.engine import Decoding
from saccade.decode.protocol import Hypothesis
from saccade.errors import ConfigError, DataError
from saccade.tasks.language.writer import Generated, Writer
from saccade.tasks.translation.translator import Translated, Translator

BATCH_TOKENS = 4096  # of source, times the beam
PATIENCE = 2.0  # endings asked for, as a multiple of the beam
# It forgets those that it ranks last, by log p / nᵝ. Up to 60 words √n is within 1.4 times
# (5 + n) / 6, while with n itself short sentences would be forgotten that we rank first.
LIKE_OURS = 0.5


def options(how: Decoding) -> dict[str, Any]:
    """Our settings in its words; what comes back is ranked again by `rank`."""
    if how.precision not in ("auto", "float32"):
        raise ConfigError(
            f"precision={how.precision!r} is our own decoder's; ctranslate2 has --engine-precision"
        )
    shared = {"return_scores": True, "return_end_token": True}
    if how.sample:
        drawing = {"sampling_topk": how.top_k, "sampling_topp": how.top_p}
        drawing["sampling_temperature"] = how.temperature
        return {**shared, "beam_size": 1, "length_penalty": 0.0, **drawing}
    if how.beam == 1:
        return {**shared, "beam_size": 1, "length_penalty": 0.0}
    if how.length_penalty == 0 and how.n_best == 1:
        # The first ending that beats all that is alive is the best: no rule can do better.
        return {**shared, "beam_size": how.beam, "length_penalty": 0.0}
    return {
        **shared,
        "beam_size": how.beam,
        "patience": PATIENCE,
        "num_hypotheses": round(how.beam * PATIENCE),
        "length_penalty": how.length_penalty * LIKE_OURS,
    }


def rank(
    rows: list[list[int]], scores: list[float], how: Decoding, *, penalty: float, end: int
) -> list[Hypothesis]:
    """Hypotheses as our own search ranks them: what ended goes before what was cut off.

    score · lengthᵖ = log p        the rank is by log p / ((5 + length) / 6)ᵅ
    """
    beam = Beam(size=how.beam, length_penalty=how.length_penalty)
    hypotheses: list[Hypothesis] = []
    for row, score in zip(rows, scores):
        log_p, ended = score * len(row) ** penalty, row[-1] == end
        words = row[:-1] if ended else row
        hypotheses.append(Hypothesis(words, log_p / beam.penalty(len(row)), log_p, ended))
    return sorted(hypotheses, key=lambda one: (one.finished, one.score), reverse=True)[: how.n_best]


class CTranslate2Translator:
    """A translator's sentences through an exported model."""

    def __init__(self, folder: Path, tool: Translator) -> None:
        self._engine, self._tool = _Engine("Translator", folder, tool), tool
        self._number = {entry: number for number, entry in enumerate(self._engine.entries)}

    def translate(self, texts: list[str], how: Decoding) -> Iterator[tuple[int, Translated]]:
        """Translations with the number of their text, batch by batch as they are ready."""
        if not texts:
            return
        workers = self._engine.workers(how)
        encoded = [self._tool.encode(text) for text in texts]
        sources = [source.tolist() for source in encoded]
        lengths = torch.tensor([[len(source)] for source in sources])
        budget = max(BATCH_TOKENS // how.beam, int(lengths.max()))
        for rows in Batches.of_lengths(lengths, budget=budget, seed=0).epoch(0):
            batch = rows.tolist()
            limits = self._tool.limits(lengths[rows, 0]).tolist()
            answers = self._search(workers, [sources[row] for row in batch], limits, how)
            for row, hypotheses in zip(batch, answers):
                yield row, self._tool.translated(texts[row], hypotheses)

    def _search(
        self, workers: Any, sources: list[list[int]], limits: list[int], how: Decoding
    ) -> list[list[Hypothesis]]:
        """A call has one limit for all; a sentence that went past its own is asked for again."""
        chosen, entries = options(how), self._engine.entries
        words = [[entries[token] for token in source[:-1]] for source in sources]
        lengths = {"max_decoding_length": max(limits), "min_decoding_length": 0}
        try:
            results = workers.translate_batch(words, max_input_length=0, **lengths, **chosen)
        except RuntimeError as error:  # such as a sentence longer than the table of positions
            raise DataError(
                f"CTranslate2: {error}; shorten the text, or use no --engine"
            ) from error
        answers: list[list[Hypothesis]] = []
        for source, limit, result in zip(sources, limits, results):
            rows = [[self._number[entry] for entry in row] for row in result.hypotheses]
            if max(map(len, rows)) > limit:
                answers += self._search(workers, [source], [limit], how)
            else:
                answers.append(self._engine.ranked(rows, result.scores, how))
        return answers


class CTranslate2Writer:
    """A language model's texts through an exported model."""

    def __init__(self, folder: Path, tool: Writer) -> None:
        self._engine, self._tool = _Engine("Generator", folder, tool), tool

    def write(
        self, prompt: str, how: Decoding, *, count: int = 1, most_tokens: int = 100
    ) -> list[Generated]:
        """Continue a prompt `count` times."""
        tokens = self._tool.begin(prompt)
        results = self._engine.workers(how).generate_batch(
            [[self._engine.entries[token] for token in tokens]] * count,
            max_length=self._tool.most(tokens, most_tokens),
            include_prompt_in_result=False,
            **options(how),
        )
        found = (self._engine.ranked(one.sequences_ids, one.scores, how) for one in results)
        return [self._tool.generated(prompt, tokens, hypotheses) for hypotheses in found]


class _Engine:
    """An exported model in memory, with threads that compute, and its vocabulary."""

    def __init__(self, kind: str, folder: Path, tool: Translator | Writer) -> None:
        self._kind, self._folder, self._device = kind, folder, tool.device
        self.entries, self._end = tool.vocabulary.entries(), tool.vocabulary.end
        self._kept = self._start()

    def workers(self, how: Decoding) -> Any:
        """Threads take the seed when they first draw, so a seed needs threads of its own."""
        if not how.sample:
            return self._kept
        require("ctranslate2").set_random_seed(how.seed % 2**32)
        return self._start()

    def ranked(self, rows: list[list[int]], scores: list[float], how: Decoding) -> list[Hypothesis]:
        return rank(rows, scores, how, penalty=options(how)["length_penalty"], end=self._end)

    def _start(self) -> Any:
        try:
            return getattr(require("ctranslate2"), self._kind)(
                str(self._folder),
                device=self._device.type,
                device_index=self._device.index or 0,
                intra_threads=torch.get_num_threads(),
            )
        except (RuntimeError, ValueError) as error:
            where = f"{self._folder} on {self._device}"
            raise ConfigError(
                f"CTranslate2 cannot use {where}: {error}; try --device cpu"
            ) from error
