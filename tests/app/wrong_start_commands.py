"""Mistakes people make when a run is to start from others; see wrong_commands.py."""

from tests.app.wrong_commands import SMALL, Wrong

GPT = f"train gpt --unit lines --window 12 --sentences 40 {SMALL}"
RNN = f"train rnn-lm --unit lines --sentences 40 {SMALL}"

STARTS = [
    Wrong(f"{GPT} --train.lora 4", "lora=4 keeps weights as they are", f"{GPT} --init {{gpt}}"),
    Wrong(f"{GPT} --train.freeze 1", "with --init", f"{GPT} --init {{gpt}} --train.freeze 1"),
    Wrong(
        f"{GPT} --init {{gpt}} --train.lora 16",
        "lora=16 must be below 16, the width of what it adapts; 4 to 16 are usual",
        f"{GPT} --init {{gpt}} --train.lora 4",
    ),
    Wrong("train gpt --train.lora -1", "lora=-1 must be 0 or more"),
    Wrong("train gpt --train.freeze -1", "freeze=-1 must be 0 or more"),
    Wrong("train gpt --train.lora-alpha 0", "lora_alpha=0.0 must be above 0"),
    Wrong(
        f"{RNN} --init {{lm}} --train.lora 2",
        "RnnLanguageModel has no matrices of queries and values to adapt; leave it at 0",
        f"{RNN} --init {{lm}}",
    ),
    Wrong(
        f"{RNN} --init {{lm}} --train.freeze 2",
        "RnnLanguageModel does not say which of its layers lies above which; leave it at 0",
        f"{RNN} --init {{lm}} --train.freeze 0",
    ),
    Wrong("train gpt --init hf:a/b/c", "init=hf:a/b/c must be hf:owner/name, as on the Hub"),
    Wrong("train gpt --init", "missing value for argument '--init'"),
    Wrong("train gpt --init garbled", "garbled/config.json"),
    Wrong(f"{GPT} --init {{gpt}} --model.heads 3", "width=16 does not divide into heads=3"),
    Wrong(
        f"train gpt --unit stream --init {{gpt}} {SMALL}",
        "more than the model's longest=12; give --window 12, or --model.longest",
        f"train gpt --unit stream --init {{gpt}} --window 12 {SMALL}",
    ),
]
