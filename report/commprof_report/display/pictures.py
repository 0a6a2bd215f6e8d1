"""Pictures: their files and common style. matplotlib is imported only here and in plots/, when
drawing."""

from __future__ import annotations

import io
import sys
import textwrap
from pathlib import Path
from typing import Any, Protocol

from ..base import ReportError, checked, renamed_whole
from .colours import INK, in_both_modes

ENDINGS = (".png", ".svg", ".pdf")
STYLE = {
    "font.size": 10,
    "text.color": INK,
    "font.family": "sans-serif",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.labelcolor": "#333333",
    "axes.edgecolor": "#888888",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.8,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "commprof",
    "text.parse_math": False,
    "savefig.dpi": 150,
}


class Picture(Protocol):
    """size: width and height in inches."""

    @property
    def size(self) -> tuple[float, float]: ...

    def draw(self, axes: Any) -> None: ...


picture_path = checked(
    lambda word: Path(word) if Path(word).suffix.lower() in ENDINGS else None,
    f"the name of a picture ends in {', '.join(ENDINGS)}",
)


def is_possible() -> bool:
    """Whether there is matplotlib 3.6 or newer."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return getattr(matplotlib, "__version_info__", (0,)) >= (3, 6)  # 3.4 and older do not have it


def save(path: Path, picture: Picture | None, source: str, why_none: str, mode: int) -> None:
    """Writes the file, with its source in a corner. Raises ReportError if there is no picture, and
    says why_none, or no matplotlib."""
    if picture is None:
        raise ReportError(path, f"not drawn: {why_none}")
    if not is_possible():
        raise ReportError(
            path,
            f"not drawn: no matplotlib 3.6 or newer is installed for {sys.executable} (tables do "
            "not need it)",
        )
    drawn = _drawn(path.suffix[1:].lower(), picture, source)
    with renamed_whole(path, mode) as aside:
        aside.write_bytes(drawn)


def svg(picture: Picture | None) -> bytes | None:
    """For the page, whose mode it follows. None: there is no picture, or no matplotlib."""
    return in_both_modes(_drawn("svg", picture)) if picture and is_possible() else None


def _drawn(ending: str, picture: Picture, source: str = "") -> bytes:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    file = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=picture.size, layout="constrained")
        FigureCanvasAgg(figure)
        picture.draw(figure.add_subplot())
        if source:
            lines = textwrap.fill(source, round(20 * figure.get_figwidth()))  # 20 in an inch
            figure.supxlabel(
                lines, x=0.995, horizontalalignment="right", fontsize=7, color="#777777"
            )
        figure.savefig(file, format=ending, metadata=metadata)
    return file.getvalue()
