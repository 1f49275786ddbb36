"""Mistakes with images that are told by codes; see wrong_commands.py."""

from tests.app.wrong_commands import SMALL, Wrong

DVAE = f"train dvae --image 32 --model.width 8 --model.codes 8 {SMALL} --train.batch-tokens 8"
RECONSTRUCTION = [
    Wrong(f"{DVAE} --scenes 0", "scenes=0 must be at least 1", f"{DVAE} --scenes 8"),
    Wrong(f"{DVAE} --image 34", "image=34 is not cut into cells of 4 pixels"),
    Wrong(f"{DVAE} --temperature 0", "temperature=0.0 must be above 0 and at most 1"),
    Wrong(f"{DVAE} --beta -1", "beta=-1.0 must be 0 or more"),
    Wrong(f"{DVAE} --model.width 6", "width=6 must be a multiple of 4"),
    Wrong(f"{DVAE} --model.patch 3", "3"),
    Wrong(f"{DVAE} --data nowhere", "nowhere does not exist"),
    Wrong(f"{DVAE} --data folder", "folder holds no image: no name in it ends in .jpg"),
    Wrong(f"{DVAE} --data broken.zip", "broken.zip is not a whole zip archive"),
    Wrong(f"{DVAE} --data broken.json", "broken.json is not COCO"),
    Wrong(f"{DVAE} --data few", "too few to hold some out", f"{DVAE} --data few --held-out 0.5"),
    Wrong(f"{DVAE} --data bad", "1 bad row", f"{DVAE} --data bad --skip-bad 1 --held-out 0.5"),
    Wrong("predict {vae}", "name the images", "predict {vae} dot.png"),
    Wrong("predict {vae} nofile.jpg", "nofile.jpg does not exist; check the path"),
    Wrong("predict {vae} dot.png -o x.jpg", "x.jpg: pairs are drawn as .png, not .jpg"),
    Wrong("predict {vae} dot.png -o no/x.png", "cannot write no/x.png"),
    Wrong("eval {vae} --split foo", "no split 'foo'"),
    Wrong("eval {vae} --data nowhere", "nowhere does not exist"),
    Wrong("eval {vae} --draw x.gif", "x.gif: pairs are drawn as .png, not .gif"),
    Wrong("look {vae} dot.png", "has no attention to look at", "predict {vae} dot.png -o x.png"),
]
