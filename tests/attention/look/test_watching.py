"""Where a model attends, by name."""

import pytest

from saccade.attention.look.watching import sites
from saccade.models import (
    ConvSeq2SeqConfig,
    GptConfig,
    RnnAttentionConfig,
    RnnLanguageConfig,
    Seq2SeqConfig,
    TransformerConfig,
)


def test_sites_of_a_transformer_have_stable_names() -> None:
    model = TransformerConfig(vocabulary=10, width=8, depth=2, heads=2, hidden=16).build()
    assert list(sites(model)) == [
        "encoder.0.self",
        "encoder.1.self",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.self",
        "decoder.1.cross",
    ]


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (RnnAttentionConfig(vocabulary=10, width=8), ["decoder.cross"]),
        (RnnAttentionConfig(vocabulary=10, width=8, context="layer"), ["decoder.cross"]),
        (
            ConvSeq2SeqConfig(vocabulary=10, width=8, depth=2),
            ["decoder.0.cross", "decoder.1.cross"],
        ),
        (
            GptConfig(vocabulary=10, width=8, depth=2, heads=2),
            ["decoder.0.self", "decoder.1.self"],
        ),
        (Seq2SeqConfig(vocabulary=10, width=8), []),
        (RnnLanguageConfig(vocabulary=10, width=8), []),
    ],
)
def test_sites_of_the_other_models_are_named_alike(config: object, names: list[str]) -> None:
    assert list(sites(config.build())) == names  # type: ignore[attr-defined]
