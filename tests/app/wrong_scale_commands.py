"""Mistakes with what is large: split weights, activations computed again, and their bench."""

from tests.app.wrong_commands import RNN, Wrong

SCALE = [
    Wrong(
        "train gpt --train.checkpoint-activations 2",
        "checkpoint_activations=2.0 must be from 0 to 1, a share",
    ),
    Wrong("train rnn-lm --train.shard -1", "shard=-1 must be 0 or more"),
    Wrong(
        f"{RNN} --train.shard 2",
        "shard=2 does not divide the number of processes, 1; start a multiple of it",
        f"{RNN} --train.shard 0",
    ),
    Wrong(
        f"{RNN} --train.checkpoint-activations 1",
        "checkpoint_activations=1.0: RnnLanguageModel has no blocks that could be computed again",
        f"{RNN} --train.checkpoint-activations 0",
    ),
    Wrong("bench scale --model vit", "'vit' is no preset of a GPT; try one of: gpt-nano, gpt-mini"),
    Wrong("bench scale --rows 0", "rows=0 must be at least 1"),
    Wrong("bench scale --recomputed 7", "checkpoint_activations=7.0 must be from 0 to 1"),
]
