"""Mistakes with images and texts about them; see wrong_commands.py."""

from tests.app.wrong_commands import Wrong

HERE = '"is it red?"'
JOINT = [
    Wrong(
        "train vilbert-questions --data v2_train2014_annotations.json --boxes dot.jsonl",
        "has annotations and no questions; give the file with the questions, such as v2_OpenEnded",
    ),
    Wrong(
        "train vilbert-referring --data refcoco --boxes dot.jsonl",
        "refcoco has refs(unc).p, a pickle, which may run code when it is opened, so it is",
    ),
    Wrong("predict {ans}", 'name an image and write what to ask of it: photo.jpg "TEXT"'),
    Wrong("predict {ans} dot.png", 'photo.jpg "TEXT"', f"predict {{cel}} dot.png {HERE}"),
    Wrong(
        "predict {cel} dot.png dot.png",
        "dot.png is a file, and the last argument is the text",
        f"predict {{cel}} dot.png --text {HERE}",
    ),
    Wrong("predict {cel} --text hi", "name the images"),
    Wrong(
        "eval {ans} --boxes dot.jsonl",
        "--boxes and --detector are of other images than the run's own; name these with --data",
        "eval {ans}",
    ),
    Wrong(
        f"predict {{ans}} dot.png {HERE}",
        "answering looks at boxes, and nobody says where they are: name a detector with --detector",
        f"predict {{ans}} dot.png {HERE} --detector {{det}}",
    ),
    Wrong(
        f"predict {{ref}} dot.png {HERE} --detector {{det}} --boxes dot.jsonl",
        "referring looks at boxes, and both were given",
        f"predict {{ref}} dot.png {HERE} --boxes dot.jsonl",
    ),
    Wrong(
        f"predict {{cel}} dot.png {HERE} --boxes dot.jsonl",
        "cells looks at the cells of a grid, not at boxes; leave --detector and --boxes out",
        f"predict {{cel}} dot.png {HERE}",
    ),
    Wrong(
        f"predict {{ans}} dot.png {HERE} --detector {{cls}}",
        "finds no objects; name a run that does",
    ),
    Wrong(f"predict {{ans}} dot.png {HERE} --detector nowhere", "there is no run at nowhere"),
    Wrong(f"predict {{ans}} dot.png {HERE} --boxes nofile.json", "nofile.json cannot be read"),
    Wrong(f"predict {{ans}} dot.png {HERE} --boxes broken.json", "broken.json is no JSON"),
    Wrong(
        f"predict {{ans}} dot.png {HERE} --boxes wide.jsonl",
        "wide.jsonl, dot.png: outside the image: [1, 2, 300, 40] reaches out of 40 × 40",
        f"predict {{ans}} dot.png {HERE} --boxes dot.jsonl",
    ),
    Wrong(f"predict {{ans}} few/ant/0.png {HERE} --boxes dot.jsonl", "dot.jsonl has no boxes of"),
    Wrong(
        "train vilbert --boxes dot.jsonl",
        "dot.jsonl is of data of your own; give --data too, or leave --boxes out",
    ),
    Wrong(
        "train vilbert --data few --boxes dot.jsonl --detector {det}",
        "both say where regions are; leave one out",
    ),
    Wrong(
        "train vilbert --data few --detector {det} --model.regions cells",
        "looks at none; add --model.regions boxes, or leave --detector out",
    ),
    Wrong(f"predict {{cel}} nofile.jpg {HERE}", "nofile.jpg does not exist; check the path"),
    Wrong(f"predict {{cel}} broken.png {HERE}", "broken.png: "),
    Wrong(f"predict {{cel}} folder {HERE}", "holds no images"),
    Wrong("predict {cel} broken.jsonl", "broken.jsonl:1 is no JSON"),
    Wrong("predict {cel} nofile.jsonl", "nofile.jsonl cannot be read: No such file"),
    Wrong("predict {cel} dot.jsonl", 'dot.jsonl:1: a line has an "image" and a text under one of'),
    Wrong("predict {cel} -", "there are no lines to read"),
    Wrong(
        "predict {cel} - --json",
        "standard input, line 1: 'dot.png is it red?' is no image and text; put a tab between them",
        typed=b"dot.png is it red?\n",
    ),
    Wrong(f"predict {{cel}} dot.png {HERE} --best 0", "best=0 must be at least 1"),
    Wrong(f"predict {{ref}} dot.png {HERE} --best 3", "unrecognized options: --best"),
    Wrong(f"predict {{ref}} dot.png {HERE} --draw dot.png", "cannot make the folder dot.png"),
    Wrong('predict {cel} dot.png "  "', "has no word that the model knows; write one"),
    Wrong("predict {cel} dot.png " + '"' + "red " * 60 + '"', "but the model reads 40; shorten it"),
    Wrong(
        'predict {pre} dot.png "a___b" --boxes dot.jsonl',
        "has a blank within a word",
        'predict {pre} dot.png "a ___ b" --boxes dot.jsonl',
    ),
    Wrong(
        'predict {cho} dot.png "a ring" --boxes dot.jsonl',
        "'a ring' is one sentence, and there is nothing to choose from; give two at least",
        'predict {cho} dot.png --text "a ring" --text "a star" --boxes dot.jsonl',
    ),
    Wrong(
        'predict {cho} dot.png --text "a ring" --text " " --boxes dot.jsonl',
        "' ' has no word that the model knows; write one",
    ),
    Wrong(
        "predict {cho} dot.jsonl", 'dot.jsonl:1: a line has an "image" and a list of "sentences"'
    ),
    Wrong(
        'look {cho} dot.png --text "a ring" --text "a star" --boxes dot.jsonl --of "a cat"',
        "of='a cat' is none of the sentences to choose from: a ring; a star",
        'look {cho} dot.png --text "a ring" --text "a star" --boxes dot.jsonl --of "a star"',
    ),
    Wrong("eval {cho} --data nowhere", "nowhere"),
    Wrong("eval {cho} --pointing", "unrecognized options: --pointing"),
    Wrong("eval {ans} --split foo", "no split 'foo'", "eval {ans} --split valid"),
    Wrong("eval {ref} --data nowhere", "nowhere"),
    Wrong("eval {fit} --data few --keep", "--keep is for the run's own data"),
    Wrong(
        "look {ans}",
        'name an image and a text to look at, photo.jpg "TEXT", or a split',
        "look {ans} --split test --rows 1",
    ),
    Wrong(f"look {{cel}} dot.png {HERE} --split test", "name an image and a text to look at"),
    Wrong(f"look {{cel}} dot.png {HERE} --rows 3", "--rows 3 is of a --split, and at least 1"),
    Wrong("look {fit} --split test --rows 0", "--rows 0 is of a --split"),
    Wrong(
        "look {ans} --split test --detector {det}",
        "a --split has regions of its own; leave --detector and --boxes out",
    ),
    Wrong("look {ref} --split foo", "no split 'foo'"),
    Wrong(
        f"look {{cel}} dot.png {HERE} --layer 9",
        "--layer 9 is not there; there are 0 (joins.0.words.cross), 1 (joins.1.words.cross)",
        f"look {{cel}} dot.png {HERE} --layer 1",
    ),
    Wrong(f"look {{cel}} dot.png {HERE} --head 9", "joins.1.words.cross has heads 0 to 1"),
    Wrong("look {cel} dot.png --text a --text b -o x.png", "x.png holds one text; several go"),
    Wrong(f"look {{cel}} dot.png {HERE} -o x.pdf", "x.pdf"),
    Wrong(f"look {{cel}} dot.png {HERE} --layer 0 -o x.html", "a page has every layer and head"),
    Wrong(f"look {{cel}} dot.png {HERE} --of up -o x.html", "of='up' is no answer of this model"),
    Wrong(f"look {{ref}} dot.png {HERE} --of red", "unrecognized options: --of"),
    Wrong(f"look {{ans}} dot.png {HERE}", "answering looks at boxes, and nobody says where"),
]
