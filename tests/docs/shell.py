"""What a block of commands would run: bash reads it, and every program is noted, none started."""

import shutil
import subprocess
from pathlib import Path

BASH = shutil.which("bash")
_NOTE = """
command_not_found_handle() { local IFS=$'\\x1f'; printf '%s\\x1e' "$*" >> "$NOTES"; }
"""


def programs_run(script: str, folder: Path) -> list[list[str]]:
    """Each program with its arguments, quotes taken off, loops and functions gone through."""
    assert BASH is not None
    checked = subprocess.run(
        [BASH, "-n"], input=script, capture_output=True, text=True, check=False
    )
    assert not checked.stderr, checked.stderr
    notes = folder / "notes"
    notes.unlink(missing_ok=True)
    environment = {"PATH": str(folder / "nothing"), "NOTES": str(notes), "HOME": str(folder)}
    command = [BASH, "--norc", "-c", f"{_NOTE}\n{script}\nwait"]
    subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, timeout=30, check=False
    )
    if not notes.exists():
        return []
    return [one.split("\x1f") for one in notes.read_text().split("\x1e")[:-1]]
