"""Mistakes people make when they ask for figures; see wrong_commands.py."""

from tests.app.wrong_commands import Wrong

FIGURES = [
    Wrong("figures C99", "there is no figure 'C99'; there are: C1, ", "figures"),
    Wrong("figures C3 --seeds 0", "seeds=0 must be at least 1", "figures C3 --seeds 1"),
    Wrong("figures C3 --budget 0", "budget=0.0 must be above 0 and at most 1"),
    Wrong("figures C3 --budget 2", "budget=2.0 must be above 0 and at most 1"),
    Wrong("figures C3 --jobs -1", "jobs=-1 must be 0 or more; 0 is", "figures C3 --jobs 0"),
    Wrong("figures C3 --device nowhere", "nowhere"),
    Wrong("figures C3 --out good.txt", "cannot write good.txt", "figures C3 --out figures"),
]
