"""Mistakes with images that are compared with texts; see wrong_commands.py."""

from tests.app.wrong_commands import SMALL, Wrong

CLIP = (
    "train clip --scenes 8 --image 32 --model.encoder resnet-nano --model.width 8 --model.heads 2 "
    f"--model.joint 8 --train.batch-tokens 4 {SMALL}"
)
TWO = '--text "a red ring" --text "a blue star"'
MATCHING = [
    Wrong(
        f"{CLIP} --boxes boxes.jsonl",
        "boxes.jsonl says where regions are, and ClipConfig compares whole images",
        CLIP,
    ),
    Wrong(
        f"{CLIP} --data yolo".replace("--scenes 8 ", ""),
        "yolo has numbers in the texts beside its images, as YOLO has boxes (1.txt); write",
    ),
    Wrong("predict {mat} dot.png", 'photo.jpg "TEXT"', f"predict {{mat}} dot.png {TWO}"),
    Wrong(f"predict {{mat}} {TWO}", "name the images"),
    Wrong(f"predict {{mat}} dot.png {TWO} --best 0", "best=0 must be at least 1"),
    Wrong("predict {mat} dot.png ''", "'' has no word that the model knows"),
    Wrong('predict {mat} dot.png " "', "has no word that the model knows"),
    Wrong(f"predict {{mat}} dot.png {TWO} --text ' '", "has no word that the model knows"),
    Wrong(f"predict {{mat}} dot.png '{'ring ' * 40}'", "but the model reads 24; shorten it"),
    Wrong('predict {mat} broken.png "a ring"', "broken.png: "),
    Wrong('predict {mat} bad "a ring"', "1 of 8 images could not be read"),
    Wrong(
        'eval {mat} --template "a {{}}"',
        "--template is of --classes; name images with classes, or leave it out",
        'eval {mat} --classes shapes --template "a {{}}"',
    ),
    Wrong(
        'eval {mat} --classes few --template "a dog"',
        "template='a dog' has no {} where the name of a class goes; write one",
        'eval {mat} --classes few --template "a picture of a {{}}"',
    ),
    Wrong(
        "eval {mat} --classes few --data folder",
        "--data is of sentences, and --classes has data of its own",
        "eval {mat} --classes few",
    ),
    Wrong(
        "eval {mat} --classes few --keep",
        "--keep is of sentences, and --classes has data of its own",
        "eval {mat} --keep",
    ),
    Wrong("eval {mat} --classes nowhere", "nowhere"),
    Wrong("eval {mat} --classes shapes --split week", "shapes has no split 'week'"),
    Wrong("eval {mat} --split week", "shapes has no split 'week'", "eval {mat} --split many"),
    Wrong("look {mat}", "name an image and a text to look at"),
    Wrong("look {mat} dot.png", 'photo.jpg "TEXT"', 'look {mat} dot.png "a ring"'),
    Wrong(
        f"look {{mat}} dot.png {TWO} --words",
        "2 texts: --words looks into one; give one",
        'look {mat} dot.png "a red ring" --words',
    ),
    Wrong("look {mat} --split test --words", "--words is of a text that you name"),
    Wrong("look {mat} --rows 3 dot.png hi", "--rows 3 is of a --split, and at least 1"),
    Wrong(
        f"look {{mat}} dot.png {TWO} --of up",
        "of='up' is no class of this model; there are: a red ring, a blue star",
        f'look {{mat}} dot.png {TWO} --of "a red ring"',
    ),
    Wrong('look {mat} dot.png few/ant/1.png "a ring" -o x.png', "x.png holds one image"),
    Wrong("train clip --augment flip", "augment=flip mirrors images, and texts about shapes say"),
    Wrong(f"{CLIP} --model.encoder eye", "no image encoder 'eye'", CLIP),
    Wrong("train clip --validated 0", "validated=0 must be at least 1"),
    Wrong("train clip --model.joint 0", "joint=0 must be at least 1"),
]
