"""Drawings inside the page. Their colours follow the page's, and text from files is escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .page import text

MARKS = (  # of the sides of a comparison, which differ without colour too: 8 wide, around 0, 0
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "M0,-5L5,4L-5,4z",
    "M-4,-4h8v8h-8z",
    "M0,-5.5L5.5,0L0,5.5L-5.5,0z",
)
STYLES = 4
WIDTH, HEIGHT = 440, 90  # of a course


def element(tag: str, *inside: str, **attributes: object) -> str:
    """`inside` is markup. class_ is the attribute class, text_anchor text-anchor."""
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_shown(value)}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{named}>{''.join(inside)}</{tag}>"


def _shown(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else text(value)


def label(x: float, y: float, words: str, **attributes: object) -> str:
    return element("text", text(words), x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def mark(style: int, x: float, y: float, kind: str, name: str = "") -> str:
    """A mark that says its name under the mouse."""
    number = style % STYLES
    title = [element("title", text(name))] if name else []
    return element(
        "path", *title, d=MARKS[number], transform=f"translate({x:.1f},{y:.1f})",
        class_=f"side-{number} {kind}",
    )


def course(head: str, values: Sequence[float], show: Callable[[float], str]) -> str:
    """Values at equal distances, from zero to the largest."""
    most, last = max(values), max(1, len(values) - 1)
    points = " ".join(
        f"{WIDTH * place / last:.0f},{HEIGHT * (1 - value / (most or 1)):.0f}"
        for place, value in enumerate(values)
    )
    said = f"{head}: {show(values[-1])}; at most {show(most)}"
    drawn = element("path", d=f"M0,{HEIGHT}H{WIDTH}"), element("polyline", points=points)
    drawing = element(
        "svg", *drawn, viewBox=f"0 -2 {WIDTH} {HEIGHT + 4}", role="img", aria_label=said
    )
    return element("figure", element("figcaption", text(said)), drawing, class_="course")
