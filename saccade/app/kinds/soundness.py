"""What could only go wrong later is refused when a run is loaded.

Weights that are no numbers make every score NaN, and a search among them ends at its deadline; a
tokenizer of another model gives tokens for which there is no embedding.
"""

import torch

from saccade.app.kinds.base import LoadedRun
from saccade.config import WordModelConfig
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import RunError
from saccade.printable import printable
from saccade.tasks.tokenizer import TOKENIZER


def check_weights(run: LoadedRun) -> None:
    """Refuse weights that are not all finite."""
    for name, weights in run.network.state_dict().items():
        if weights.is_floating_point() and not torch.isfinite(weights).all():
            raise RunError(
                f"{printable(run.folder.weights)} cannot be used: {name} holds values that are not "
                "finite; copy it again from where it came from, or train the run anew"
            )


def load_vocabulary(run: LoadedRun) -> Vocabulary:
    """The tokenizer of a run; refuses one that has tokens which the model does not know."""
    path = run.asset(TOKENIZER)
    vocabulary = Vocabulary.load(path)
    model = run.recipe.model
    if isinstance(model, WordModelConfig) and vocabulary.highest >= model.vocabulary:
        raise RunError(
            f"{printable(path)} has tokens up to {vocabulary.highest}, and the model knows "
            f"{model.vocabulary}: it belongs to another run; copy the run again as a whole"
        )
    return vocabulary
