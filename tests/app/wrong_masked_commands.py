"""Mistakes with models that fill blanks; the runs and files are those of `wrong_commands.py`."""

from tests.app.wrong_commands import SMALL, Wrong

BERT = (
    f"train bert --data good.txt --vocabulary 300 --model.width 8 --model.heads 2 {SMALL} "
    "--train.batch-tokens 512"
)

MASKED = [
    Wrong(f"{BERT} --masked 0", "masked=0.0 must be above 0", f"{BERT} --masked 0.15"),
    Wrong(f"{BERT} --masked 1", "masked=1.0 must be above 0 and below 1"),
    Wrong(f"{BERT} --window 3", "raise --window, or give --unit stream", BERT),
    Wrong(
        f"{BERT} --unit stream --window 999",
        "window=999 is more than the model's longest=128; give --window 128",
        f"{BERT} --unit stream --window 128",
    ),
    Wrong(
        f"{BERT} --unit stream --next-sentence",
        "give --unit lines",
        f"{BERT} --unit lines --next-sentence",
    ),
    Wrong("train bert --next-sentence", "give --data too", f"{BERT} --next-sentence"),
    Wrong("train electra --data good.txt --next-sentence", "leave --next-sentence out"),
    Wrong("train bert --level letters", "invalid choice 'letters'"),
    Wrong("train bert --unit word", "invalid choice 'word'"),
    Wrong("train bert --data pairs.tsv", "texts are not read from .tsv"),
    Wrong(
        "predict {mlm} 'no blank here'",
        'write ___ or [MASK] in place of a word, as in "no ___"',
        "predict {mlm} 'no ___'",
    ),
    Wrong("predict {mlm} ''", "has no blank to fill"),
    Wrong("predict {mlm} 'un___able'", "put spaces around it", "predict {mlm} 'un ___ able'"),
    Wrong("predict {mlm} '___' --n-best 0", "n_best=0 must be", "predict {mlm} '___' --n-best 2"),
    Wrong("predict {mlm} '___' --beam 3", "unrecognized options: --beam"),
    Wrong("predict {mlm} nofile.txt", "does not exist", "predict {mlm} --text 'nofile.txt ___'"),
    Wrong("predict {mlm} good.txt", "(40 bad lines); mend it, or pass --skip-bad 40"),
    Wrong(
        "predict {mlm} -",
        "text:2: 'x' has no blank",
        "predict {mlm} - --skip-bad 1",
        b"a ___\nx\n",
    ),
    Wrong("predict {mlm} '___' --engine ctranslate2", "unrecognized options: --engine"),
    Wrong("eval {mlm} --split foo", "lingua has no split 'foo'", "eval {mlm} --split valid"),
    Wrong("eval {mlm} --data good.txt --split test", "leave --split out"),
    Wrong("look {mlm} hi --beam 3", "only reads; leave it out", "look {mlm} hi"),
    Wrong("look {mlm} hi --most-tokens 3", "only reads; leave it out"),
    Wrong("look {mlm} hi --layer 9", "there are 0 (encoder.0.self), 1 (encoder.1.self)"),
    Wrong("look {mlm} hi --layer rollout --head 1", "rollout has one head, 0"),
    Wrong("look {mlm} hi --zoom encoder.0.self:0", "name it with --out x.html"),
    Wrong("look {mlm} long.txt", "too many to print; name a", "look {mlm} long.txt -o x.json"),
    Wrong("export {mlm} --to onnx", "runs of masked cannot be exported to onnx"),
]
