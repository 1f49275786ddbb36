"""`saccade` whose Ray workers kill themselves in training, each place once.

Called with a folder for what has happened, a plan in JSON, and the arguments of `saccade`. The plan
is a list of (step, rank): that worker dies of SIGKILL when it has done that update. The file
`begun` has a line for each update that the first worker has begun.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from saccade.app.cli import main
from saccade.app.cluster import training

FOLDER, PLAN = Path(sys.argv[1]), json.loads(sys.argv[2])


# Ray sends a function of the main module whole, so that its workers need not find this file.
def work(given: dict[str, Any]) -> None:
    from saccade.app.cluster.training import work
    from saccade.train.fit import Trainer

    plain = Trainer.advance

    def advance(trainer: Trainer) -> None:
        if trainer.world.first:
            with (FOLDER / "begun").open("a") as file:
                file.write(f"{trainer.step + 1}\n")
        plain(trainer)
        place = [trainer.step, trainer.world.rank]
        done = FOLDER / "killed-{}-{}".format(*place)
        if place in PLAN and not done.exists():
            done.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)

    Trainer.advance = advance  # type: ignore[method-assign]
    work(given)


if __name__ == "__main__":
    training.work = work
    sys.argv[1:] = sys.argv[3:]
    main()
