"""Pictures: their files, common style and colours. matplotlib is imported only here and in plots/,
when drawing.

Each colour is for one thing: a call has the same one in every picture. They are Tol's muted scheme
(https://sronpersonalpages.nl/~pault/), which colour-blind readers can distinguish; the parts of a
step have colours that no call has. A colour is named by its value on white paper; in the page it is
a variable of CSS (`variable`) with another value in dark mode.
"""

from __future__ import annotations

import io
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, Protocol

from ..base import ReportError, checked, renamed_whole, units


TRANSFER, WAITING, UNSPLIT, FILES = "#0072b2", "#e69f00", "#9fc5dd", "#8c564b"
OUTSIDE, IN_MPI = "#dce2e8", "#aeb9c2"
ALERT = "#d50000"  # an outlier, the critical path
COMPUTING, COMMUNICATING, BOTH, COPYING = "#6b7b8b", "#8250df", "#bda6ea", "#b08d57"  # of a GPU
NEUTRAL = "#5b6875"  # what is no call, no waiting and no transfer
SIDES = ("#5b6875", "#b34700", "#007a55", "#a0497c")  # of a comparison; the first: the reference
OTHER_CALLS = "#c4c9ce"
PAPER, INK = "#ffffff", "#1c2733"
DARK = {
    TRANSFER: "#3f9fd8",
    UNSPLIT: "#34607c",
    FILES: "#b9847a",
    OUTSIDE: "#3d4854",
    IN_MPI: "#5d6a76",
    ALERT: "#ff6b6b",
    COMPUTING: "#8c9cac",
    COMMUNICATING: "#a884f0",
    BOTH: "#6d5799",
    NEUTRAL: "#a3b0bd",
    OTHER_CALLS: "#59636d",
    PAPER: "#1b2127",
    INK: "#e6ebf0",
    **dict(zip(SIDES[1:], ("#f0a050", "#3ecf9f", "#e29cc4"))),
    "#333333": "#c9d2da",
    "#555555": "#a3b0bd",
    "#777777": "#8c99a5",
    "#888888": "#77838f",
    "#e4e4e4": "#38424d",
}
_ROSE, _CYAN, _SAND, _TEAL, _OLIVE = "#cc6677", "#88ccee", "#ddcc77", "#44aa99", "#999933"
_GREEN, _WINE, _PURPLE, _INDIGO = "#117733", "#882255", "#aa4499", "#332288"
_LIGHTER = {_GREEN: "#2f9052", _WINE: "#c75b93", _PURPLE: "#cc70bc", _INDIGO: "#8577d6"}
# how the name of an operation begins, its colour, and whether it is the paler one of two
_OPERATIONS = (
    ("allreduce", _TEAL, False),
    ("reducescatter", _GREEN, False),
    ("reduce", _GREEN, True),
    ("scan", _GREEN, True),
    ("exscan", _GREEN, True),
    ("bcast", _WINE, False),
    ("broadcast", _WINE, False),
    ("scatter", _WINE, True),
    ("allgather", _PURPLE, False),
    ("gather", _PURPLE, True),
    ("neighborallgather", _PURPLE, True),
    ("alltoall", _OLIVE, False),
    ("neighboralltoall", _OLIVE, True),
    ("barrier", _SAND, False),
    ("sendrecv", _ROSE, True),
    *((f"{mode}send", _ROSE, False) for mode in ("", "b", "s", "r", "p")),
    *((f"{mode}recv", _CYAN, False) for mode in ("", "m", "p")),
    ("wait", _INDIGO, False),
    ("test", _INDIGO, False),
    ("probe", _INDIGO, True),
    ("mprobe", _INDIGO, True),
    ("start", _INDIGO, True),
    ("requestgetstatus", _INDIGO, True),
)
_NAME = re.compile(r"(?:MPI_|nccl)(I(?=[a-z]))?(\w+)")
_OF_CSS = re.compile("--colour-([0-9a-f]{6})")
_OF_SVG = re.compile('(?<=: )(#[0-9a-f]{6})(?=[;"])')


def of_call(name: str) -> str:
    """By its operation: alike for MPI and NCCL, stronger for a nonblocking call. `name` may go on:
    MPI_Allreduce of device memory."""
    if name.endswith(units.NEGOTIATION):
        return IN_MPI
    found = _NAME.match(name)
    operation = found[2].replace("_", "").lower() if found else ""
    for begin, hue, is_pale in _OPERATIONS:
        if found and operation.startswith(begin):
            return _tone(hue, is_pale, bool(found[1]))
    return OTHER_CALLS


def _tone(hue: str, is_pale: bool, is_strong: bool) -> str:
    """As much of paper and ink each as tells it from the others."""
    dark = _LIGHTER.get(hue, hue)
    light, dark = (
        (_mixed(hue, "#ffffff", 0.4), _mixed(dark, "#000000", 0.3)) if is_pale else (hue, dark)
    )
    if is_strong:
        light, dark = _mixed(light, "#000000", 0.28), _mixed(dark, "#ffffff", 0.4)
    DARK[light] = dark
    return light


def _mixed(colour: str, other: str, part: float) -> str:
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(other[1:]))
    return "#" + bytes(round(one + part * (to - one)) for one, to in pairs).hex()


def variable(colour: str) -> str:
    """As the page's text names it."""
    return f"var(--colour-{colour[1:]})"


def variables(text: str) -> str:
    """CSS that defines the variables that a text names, in light and in dark mode."""
    used = sorted({f"#{digits}" for digits in _OF_CSS.findall(text)})
    light, dark = (
        "".join(f"--colour-{colour[1:]}:{values.get(colour, colour)};" for colour in used)
        for values in ({}, DARK)
    )
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}" if used else ""


def in_both_modes(svg: bytes) -> bytes:
    """matplotlib's SVG with variables for its colours: it follows the mode of the page around."""
    head, tag, drawn = svg.decode().partition("<defs>")
    drawn = _OF_SVG.sub(lambda found: variable(found[1]), drawn)
    return f"{head}<style>{variables(drawn)}</style>{tag}{drawn}".encode()


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
