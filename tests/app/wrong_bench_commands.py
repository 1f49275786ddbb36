"""Mistakes about benchmarks; see wrong_commands.py."""

from tests.app.wrong_commands import Wrong

BENCH = [
    Wrong("bench fly", "there is no bench 'fly'; there are: train, pretrain"),
    Wrong("bench look --lengths -1", "lengths=(-1,) must be positions"),
    Wrong("bench look --lengths 0", "lengths=(0,) must be positions"),
    Wrong("bench look --lengths x", "error parsing --lengths"),
    Wrong("bench look --heads 0", "heads=0 must be at least 1"),
    Wrong("bench look --head-width 0", "head_width=0 must be at least 1"),
    Wrong("bench look --precision fp8", "precision=fp8 is not one of bf16, fp16, fp32"),
    Wrong("bench look --device moon", "device='moon' cannot be used here"),
    Wrong("bench look --seconds nan", "seconds=nan must be 0 or more"),
    Wrong(f"bench look --seed {2**63}", f"seed={2**63} must be from 0"),
    Wrong("bench train --peers nobody", "peers=nobody is not one of torch"),
    Wrong("bench train --precision fp8", "precision=fp8 is not one of auto"),
    Wrong("bench train --seed -1", "seed=-1 must be from 0"),
    Wrong("bench train --seconds -1", "seconds=-1.0 must be 0 or more"),
    Wrong("bench decode --sentences 0", "sentences=0 must be at least 1"),
    Wrong("bench decode --size huge", "invalid choice 'huge'"),
    Wrong("bench decode --beams", "beams=nothing leaves nothing to measure"),
    Wrong("bench growth --lengths", "lengths=nothing leaves nothing to measure"),
    Wrong("bench rnn --contexts", "contexts=nothing leaves nothing to measure"),
    Wrong("bench growth --width 0", "width=0 must be at least 1"),
    Wrong("bench rnn --heads 0", "heads=0 must be at least 1"),
    Wrong("bench vision --foo", "unrecognized options: --foo"),
]
