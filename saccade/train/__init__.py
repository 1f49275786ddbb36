"""Training, and going on with it. `saccade.train("transformer")` calls this package itself.

A package and a function cannot both be `saccade.train`, for an import of the one would hide the
other; so it is a package that passes calls on to `app/api.py::train`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *given: Any, **named: Any) -> Any:
        return import_module("saccade.app.api").train(*given, **named)


sys.modules[__name__].__class__ = _CallablePackage
