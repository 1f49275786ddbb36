"""`python -m saccade` is `saccade`; `torchrun -m saccade train …` needs it."""

from saccade.app.cli import main

main()
