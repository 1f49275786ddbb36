"""The look document of a text that was understood: what in it the decision came from."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.look.arrays import Blobs
from saccade.app.look.document import AxisEntry, ClassEntry, LookDocument, LookEntry, SiteEntry
from saccade.app.look.settings import LookSettings, NamedModel
from saccade.app.look.site import SiteBudget, text_sites
from saccade.app.look.understanding.subject import MOST_WORDS, Understood, understand
from saccade.attention.look.looking import looking
from saccade.data.batching.rows import Rows
from saccade.tasks.teacher_forced import TeacherForced
from saccade.tasks.understanding.classifier import PAIR, TextClassifier, Texts

TEXT, DECISION = "text", "decision"
RELEVANCE, ROLLOUT = "relevance", "rollout"


def understanding_document(
    models: Sequence[NamedModel[TextClassifier]], texts: Texts, how: LookSettings
) -> LookDocument:
    """What one model or two say of a text or a pair, and what in it that came from."""
    blobs, size = Blobs(), how.budget // len(models)
    looks = [_look(model, texts, how, size, blobs) for model in models]
    names = [model.name for model in models]
    return LookDocument.of("understanding", names, PAIR.join(texts), looks, blobs)


def _look(
    model: NamedModel[TextClassifier], texts: Texts, how: LookSettings, size: int, blobs: Blobs
) -> LookEntry:
    tool = model.tool
    one = understand(tool, texts, how.of)
    answer = one.answer
    if answer.cut:
        blobs.note(f"the text is cut: {model.name} reads {tool.longest:,} tokens")
    if len(one.decisions) < len(answer.words):
        blobs.note(f"tags are looked into of the first {MOST_WORDS} words")
    axes, said = {TEXT: one.axis, DECISION: _decision_axis(one)}, None
    if answer.guesses:
        said = _classes(one)
    return LookEntry(
        run=model.name,
        label="best",
        text=answer.text,
        score=round(answer.guesses[0].probability, 6) if answer.guesses else answer.number,
        log_probability=None,
        finished=None,
        axes=axes,
        sites=[*_maps(tool, one, blobs), *_layers(tool, one, how, size, blobs)],
        classes=said,
    )


def _decision_axis(one: Understood) -> AxisEntry:
    """What was decided: one thing of a text, or a tag for each word, with other guesses at it."""
    choices = [
        [(guess.label, round(guess.probability, 6)) for guess in one.answer.word_guesses[place]]
        for place in one.words
    ]
    return AxisEntry(
        tokens=one.names,
        words=[(place, place + 1) for place in range(len(one.names))],
        prompt=len(one.names),
        choices=choices or None,
        places=[made.token for made in one.decisions if made.token is not None],
    )


def _classes(one: Understood) -> ClassEntry:
    assert one.probability is not None
    guesses = [(guess.label, round(guess.probability, 6)) for guess in one.answer.guesses]
    return ClassEntry(
        said=list(one.answer.said),
        guesses=guesses,
        truth=[],
        target=one.names[0],
        probability=round(one.probability, 6),
    )


def _maps(tool: TextClassifier, one: Understood, blobs: Blobs) -> list[SiteEntry]:
    """Those of the whole model, with a row for each decision."""
    maps = one.maps(tool)

    def site(name: str, weights: Float[Tensor, "R T"]) -> SiteEntry:
        return SiteEntry(
            name=name,
            rows=DECISION,
            columns=TEXT,
            heads=1,
            causal=False,
            reach=None,
            cell=[1, 1],
            arrays={"weights": blobs.add(weights[None], "f16")},
            derived=True,
        )

    return [site(RELEVANCE, maps.relevance), site(ROLLOUT, maps.rollout)]


@torch.inference_mode()
def _layers(
    tool: TextClassifier, one: Understood, how: LookSettings, size: int, blobs: Blobs
) -> list[SiteEntry]:
    """Where every head of every layer looked; of a long text as much as there is room for."""
    tokens = torch.tensor(one.reading.tokens)
    budget = SiteBudget.of(tool.model, len(tokens), size)
    rows = Rows.of(tokens, torch.tensor([len(tokens)])).to(tool.device)
    types = torch.tensor(one.reading.types, device=tool.device)
    with looking(tool.model, keep=budget.keep) as trace:
        tool.network(rows, types)
        seen = {name: trace[name].cpu() for name in trace}
    return text_sites(TeacherForced(seen, trace.axes, [], []), budget, how.zoom, blobs)
