"""One process of a run of many that reads its data for longer than an exchange may take."""

import sys
import time
from datetime import timedelta
from typing import Any

from saccade.app.cli import main
from saccade.tasks.language.task import LanguageSettings
from saccade.train.devices import distributed

prepare = LanguageSettings.prepare


def slowly(self: LanguageSettings, how: Any) -> Any:
    time.sleep(8)
    return prepare(self, how)


if __name__ == "__main__":
    distributed.LIMIT = timedelta(seconds=6)
    LanguageSettings.prepare = slowly  # type: ignore[method-assign]
    sys.argv = ["saccade", *sys.argv[1:]]
    main()
