"""Mistakes about plans and clusters; see wrong_commands.py."""

from tests.app.wrong_commands import RNN, Wrong

CLUSTERS = [
    Wrong("plan lstm", "'lstm'"),
    Wrong("plan --gpus 8", "name a recipe first: saccade plan RECIPE --gpus 8"),
    Wrong("plan rnn-lm --gpus 0", "gpus=0 must be at least 1"),
    Wrong("plan rnn-lm --gpus many", "error parsing --gpus"),
    Wrong("plan rnn-lm --rate -5", "rate=-5.0 must be above 0"),
    Wrong("plan rnn-lm --gpu c64", "gpu='c64' is not known here; give one of h200"),
    Wrong("plan rnn-lm --data no.txt", "no.txt"),
    Wrong("plan rnn-lm --train.steps 0", "steps=0 must be at least 1"),
    Wrong("serve {tr} --ray --ray-workers 0", "ray_workers=0 must be at least 1"),
    Wrong("serve {tr} --ray --ray-workers 3 --ray-most 2", "ray_most=2 is below ray_workers=3"),
    Wrong("predict {tr} --ray", "--ray reads files; name some"),
    Wrong("predict {cls} x.png --ray --beam 3", "beam=3 is of runs that write words"),
    Wrong("predict {ans} dot.png --ray", "reads images with texts, which --ray does not"),
    Wrong("predict {tr} --ray good.txt --ray-workers 0", "ray_workers=0 must be at least 1"),
    Wrong(f"{RNN} --ray-workers 3", "--ray-workers, --ray-most and --ray-address are of --ray"),
    Wrong(f"{RNN} --ray --ray-workers 0", "ray_workers=0 must be at least 1"),
]
