"""`make notebooks`: run every notebook from top to bottom, and store what its cells showed.

A look shows itself as a whole page, which is too large to store; where it also shows itself as a
drawing, the drawing is what is kept, and of pixels a JPEG. Whoever runs the notebook sees the page.
"""

import os
import re
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

FOLDER = Path(__file__).parent.parent / "notebooks"
DRAWINGS = ("image/svg+xml", "image/png")
PARAMETERS = "parameters"  # the tag of the cell that says how much is trained
ASSIGNED = re.compile(r"^(\w+) = .*$", re.MULTILINE)
QUALITY, WIDEST = 75, 1000  # of a JPEG, and in pixels
SECONDS = 600  # that a cell may take


def run_notebook(notebook: NotebookNode, folder: Path, **parameters: float) -> NotebookNode:
    """Execute every cell in a fresh kernel that works in a folder; the first error is raised."""
    for cell in notebook.cells:
        if PARAMETERS in cell.metadata.get("tags", []):
            cell.source = ASSIGNED.sub(
                lambda line: (
                    f"{line[1]} = {parameters[line[1]]}" if line[1] in parameters else line[0]
                ),
                cell.source,
            )
    here = str(FOLDER.parent)
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH", "")])]
    NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    ).execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    return notebook


def slimmed(notebook: NotebookNode) -> NotebookNode:
    """The same without pages that are also drawn, and without what a run has of its machine."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if any(kind in data for kind in DRAWINGS):
                data.pop("text/html", None)
            if "image/png" in data:
                data["image/jpeg"] = _jpeg(data.pop("image/png"))
    notebook.metadata.pop("language_info", None)
    return notebook


def _jpeg(png: str) -> str:
    """Base64 of one from base64 of the other."""
    made = BytesIO()
    image = Image.open(BytesIO(b64decode(png))).convert("RGB")
    image.thumbnail((WIDEST, 10 * WIDEST))
    image.save(made, "jpeg", quality=QUALITY, optimize=True)
    return b64encode(made.getvalue()).decode()


def main() -> None:
    """All notebooks, in one folder of runs that they share."""
    with TemporaryDirectory() as folder:
        for path in sorted(FOLDER.glob("*.ipynb")):
            print(path.name, flush=True)
            done = run_notebook(nbformat.read(path, as_version=4), Path(folder))
            nbformat.write(slimmed(done), path)


if __name__ == "__main__":
    main()
