"""A place where a model attends."""

from torch import nn

from saccade.attention.axes import TEXT, Axis
from saccade.attention.look.view import Watcher


class Site(nn.Module):
    """A place where a model attends; `rows` look at `columns`.

    `watcher` is set only while someone is looking. It is shown a view, or where no fused kernel
    knows the score the weights themselves.
    """

    def __init__(self, rows: Axis = TEXT, columns: Axis = TEXT) -> None:
        super().__init__()
        self.rows, self.columns = rows, columns
        self.watcher: Watcher | None = None
