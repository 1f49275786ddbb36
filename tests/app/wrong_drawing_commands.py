"""Mistakes with images that are drawn for texts; see wrong_commands.py."""

from tests.app.wrong_commands import Wrong

HERE = '"a red circle"'
DRAWINGS = [
    Wrong("train dalle --bpe-dropout 0.1", "level=words has none; pass --level bpe"),
    Wrong("train dalle --level bpe --bpe-dropout 1", "bpe_dropout=1.0 must be at least 0"),
    Wrong('predict {t2i} ""', "'' has no word to draw; write one"),
    Wrong('predict {t2i} "' + "red " * 40 + '"', "has 40 tokens, but the model reads 21; shorten"),
    Wrong(f"predict {{t2i}} {HERE} --count 0", "count=0 must be at least 1"),
    Wrong(f"predict {{t2i}} {HERE} --guidance -1", "guidance=-1.0 must be 0 or more"),
    Wrong(f"predict {{t2i}} {HERE} --temperature 0", "temperature=0.0"),
    Wrong(f"predict {{t2i}} {HERE} --top-p 2", "top_p=2.0"),
    Wrong(f"predict {{t2i}} {HERE} --beam 3", "unrecognized options: --beam"),
    Wrong(
        f"predict {{t2i}} {HERE} --rows 2",
        "--rows 2 are those of an image to complete; name that with --complete photo.png",
        f"predict {{t2i}} {HERE} --rows 2 --complete dot.png",
    ),
    Wrong(
        f"predict {{t2i}} {HERE} --rows 4 --complete dot.png",
        "rows=4 must be from 1 to 3: there are 4 in all",
        f"predict {{t2i}} {HERE} --rows 3 --complete dot.png",
    ),
    Wrong(f"predict {{t2i}} {HERE} --rows 0 --complete dot.png", "rows=0 must be from 1 to 3"),
    Wrong(f"predict {{t2i}} {HERE} --complete nofile.png", "nofile.png"),
    Wrong(f"predict {{t2i}} {HERE} --complete broken.png", "broken.png"),
    Wrong(f"predict {{t2i}} {HERE} -o x.jpg", "x.jpg: images are written as .png, not .jpg"),
    Wrong(f"predict {{t2i}} {HERE} -o nowhere/x.png", "there is no folder nowhere"),
    Wrong(f"predict {{t2i}} {HERE} --rerank {{cap}}", "draw more, as --count 16"),
    Wrong(
        f"predict {{t2i}} {HERE} --count 2 --rerank {{cap}}",
        "does not say how well an image fits a text; rerank by a run that does",
    ),
    Wrong(f"predict {{t2i}} {HERE} --count 2 --rerank nowhere", "there is no run at nowhere"),
    Wrong(f"predict {{t2i}} {HERE} --best 1", "best=1: nobody says which are"),
    Wrong("predict {t2i} nofile.txt", "nofile.txt does not exist"),
    Wrong("eval {t2i} --split foo", "no split 'foo'", "eval {t2i} --split valid"),
    Wrong("eval {t2i} --judged -1", "judged=-1 must be 0 or more"),
    Wrong(
        "eval {t2i} --rerank {mat}",
        "chooses among images that are judged; add --judged 200",
        "eval {t2i} --rerank {mat} --judged 2 --best-of 2",
    ),
    Wrong("look {t2i}", "give one text to look at, not 0"),
    Wrong('look {t2i} ""', "'' has no word to draw; write one"),
    Wrong(f"look {{t2i}} {HERE} -o x.gif", "a look is saved as .html, .svg, .png, .json"),
    Wrong(f"look {{t2i}} {HERE} --layer 9", "--layer 9 is not there; there are 0 (decoder.0.self)"),
    Wrong(f"look {{t2i}} {HERE} --head 1", "head=1 is of a layer; name that too, as --layer 0"),
    Wrong(f"look {{t2i}} {HERE} --layer 0 --head 7", "decoder.0.self has no head 7; it has 2"),
    Wrong(f"look {{t2i}} {HERE} --layer 0 -o x.html", "a page has every layer and head"),
    Wrong(f"look {{t2i}} {HERE} --budget 5", "budget=5 must be at least 100000 bytes"),
]
