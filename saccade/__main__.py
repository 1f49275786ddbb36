"""`python -m saccade` is `saccade`; `torchrun -m saccade train …` needs it."""

import signal

# Before the slow imports: until `main` listens, Ctrl-C ends quietly. Who ignores it still does.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from saccade.app.cli import main

if __name__ == "__main__":
    main()
