"""Mistakes with texts, most of which are to be understood; see wrong_commands.py."""

from tests.app.wrong_commands import PAIRS, RNN, RNN2, SMALL, Wrong

TINY = "--model.width 8 --model.heads 2 --model.depth 1 --model.hidden 8 --vocabulary 300"
BERT = f"train bert-classify {TINY} {SMALL}"
LINGUA = f"{BERT} --count 12"
OWN = f"{BERT} --data labelled.tsv --held-out 0.25"
FILES_OF_TEXT = [
    Wrong(
        RNN2.replace("corpus", "named.tsv"),
        "named.tsv:1 has 'en', 'de': say which is the source: --source en --target de",
        PAIRS.replace("corpus", "named.tsv"),
    ),
    Wrong(
        f"{RNN} --data chinese.txt",
        "give --level characters or --level bpe",
        f"{RNN} --data chinese.txt --level characters",
    ),
]
UNDERSTANDING = [
    Wrong(f"{BERT} --count 0", "count=0 must be at least 1", LINGUA),
    Wrong(f"{LINGUA} --world poems", "invalid choice 'poems'", f"{LINGUA} --world tags"),
    Wrong(f"{LINGUA} --longest 0", "longest=0 must be at least 1", f"{LINGUA} --longest 20"),
    Wrong(f"{LINGUA} --longest 2", "leaves no room for text beside 2 special tokens"),
    Wrong(f"{LINGUA} --labelled -3", "labelled=-3 must be 0", f"{LINGUA} --labelled 3"),
    Wrong(f"{LINGUA} --held-out 1", "held_out=1.0 must be at least 0 and below 1"),
    Wrong(f"{LINGUA} --label y", "label=y is of data of your own; give --data too", LINGUA),
    Wrong(f"{LINGUA} --task SST-2", "choose --world acceptable", LINGUA),
    Wrong(f"{LINGUA} --train.epochs -1", "epochs=-1.0 must be 0 or more"),
    Wrong(f"{LINGUA} --train.warmup-share 1", "warmup_share=1.0 must be at least 0 and below 1"),
    Wrong(f"{BERT} --data nowhere", "nowhere does not exist"),
    Wrong(f"{BERT} --data empty.tsv", "empty.tsv"),
    Wrong(f"{BERT} --data labelled.tsv --task poem", "is neither auto, nor one of", OWN),
    Wrong(f"{BERT} --data labelled.tsv --held-out 0", "give one, or --held-out 0.05", OWN),
    Wrong(f"{BERT} --data labelled.tsv --label nothing", "nothing", OWN),
    Wrong(
        f"{BERT} --data headless.tsv --held-out 0.25",
        "name yours with --text (by its number, as --text 2 --label 1, if that line is a row)",
        f"{BERT} --data headless.tsv --held-out 0.25 --text 2 --label 1",
    ),
    Wrong(f"{BERT} --data one-label.tsv", "a single class (good) leaves nothing to tell apart"),
    Wrong("predict {und} hi --best 0", "best=0 must be at least 1", "predict {und} hi --best 1"),
    Wrong("predict {und} hi --second there", "leave it out", "predict {und} hi"),
    Wrong("predict {und} nofile.txt", "nofile.txt does not exist", "predict {und} --text hi"),
    Wrong("predict {und} hi --beam 3", "unrecognized options: --beam"),
    Wrong("eval {und} --split foo", "no split 'foo'", "eval {und} --split valid"),
    Wrong("eval {und} --label y", "--label is a column of --data; name that, too", "eval {und}"),
    Wrong("eval {und} --submission x", "must end in .tsv, or be a folder that is there"),
    Wrong("eval {und} --submission nowhere/x.tsv", "there is no folder nowhere"),
    Wrong("eval {und} --confusion nowhere/x.png", "there is no folder nowhere", "eval {und}"),
    Wrong("eval {und} --submission x.tsv", "leave --submission out", "eval {und}"),
    Wrong("eval {und} --confusion x.pdf", "must end in .png or .svg"),
    Wrong("eval {und} --data nowhere", "nowhere does not exist"),
    Wrong("look {und}", "give one text to look at", "look {und} hi"),
    Wrong("look {und} ''", "nothing to look at in an empty text", "look {und} hi"),
    Wrong("look {und} hi --of poem", "of='poem' is no label", "look {und} hi --of acceptable"),
    Wrong("look {und} hi --second there", "--second is of pairs", "look {und} hi"),
    Wrong("look {und} hi --flow", "--flow is between two texts", "look {und} hi"),
    Wrong("look {und} hi --flow -o x.html", "a page has it: leave it out", "look {und} hi"),
    Wrong("look {und} hi --head 1", "head=1 is of a layer", "look {und} hi --layer 0"),
    Wrong("look {und} hi --layer 0 --head 9", "has no head 9"),
    Wrong("look {und} hi --layer 0 -o x.html", "a page has every layer and head"),
    Wrong("look {und} hi --compare {gpt} -o x.html", "do different work"),
    Wrong("look {und} hi -o x.pdf", "x.pdf"),
]
