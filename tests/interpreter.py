"""Kernels in Triton's interpreter, without a GPU.

Triton decides between interpreter and compiler when a kernel is defined, and cannot read kernels
that the shape checker has wrapped: so another process, without the checker, runs them all.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[1]


def interpreted(script: str, folder: Path) -> Any:
    """What a script saves at the path that it is given, its kernels interpreted."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    path = folder / "found.pt"
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(ROOT)
    subprocess.run([sys.executable, script, str(path)], check=True, env=environment, cwd=ROOT)
    return torch.load(path)


def mend_interpreter() -> None:
    """Three faults of triton 3.6's interpreter.

    It cannot read numpy 2.4's scalars, multiplies bfloat16 as whole numbers, and prepares the
    language anew at every call of a function, which takes most of its time.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    patch, dot = interpreter._patch_lang_tensor, interpreter.InterpreterBuilder.create_dot

    def patch_index(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    def widened_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        if a.dtype == tl.bfloat16:
            wide = [tl.block_type(tl.float32, list(x.data.shape)) for x in (a, b)]
            a, b = self.create_fp_ext(a, wide[0]), self.create_fp_ext(b, wide[1])
        return dot(self, a, b, *rest)

    prepared: set[int] = set()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self.fn.__globals__) not in prepared:
            interpreter._patch_lang(self.fn)
            prepared.add(id(self.fn.__globals__))
        return self.rewrite()(*args, **kwargs)

    interpreter.InterpretedFunction.__call__ = call
    interpreter._patch_lang_tensor = patch_index
    interpreter.InterpreterBuilder.create_dot = widened_dot
