"""A drawn SVG made fit for the page: checked, themed, and without what only weighs."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from trendlake.pipelines.report.palette import ROLE_OF

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_ALLOWED = frozenset({"svg", "g", "path", "rect", "line", "text", "tspan", "circle", "defs", "clipPath"})
_DROPPED = frozenset({"role", "aria-roledescription", "aria-hidden", "class", "pointer-events", "version", "opacity"})
_GEOMETRY = frozenset({"d", "transform", "x", "y", "x1", "y1", "x2", "y2", "width", "height"})
_LONG = re.compile(r"-?\d+\.\d{2,}")


def inline_svg(drawn: str) -> str:
    """`drawn` for use inside HTML, as small as it can be.

    Colours of the light palette become CSS variables, as `var(--ink)`; coordinates are rounded to a tenth
    of a pixel; of the roles only the labels of data marks are left: the whole is one image to a screen
    reader.

    Raises ValueError for an element that no picture of ours has: labels come from data, and must stay text.
    """
    root = ElementTree.fromstring(drawn)
    for element in root.iter():
        tag = element.tag.removeprefix(_NAMESPACE)
        if tag not in _ALLOWED:
            raise ValueError(f"<{tag}> does not belong in a picture")
        element.tag = tag
        for name in list(element.attrib):
            value = element.attrib[name]
            if name in ("fill", "stroke") and value.lower() in ROLE_OF:
                element.attrib[name] = f"var(--{ROLE_OF[value.lower()]})"
            elif name in _GEOMETRY:
                element.attrib[name] = _LONG.sub(lambda number: f"{float(number[0]):.1f}", value)
            elif _superfluous(tag, name, value):
                del element.attrib[name]
    return ElementTree.tostring(root, encoding="unicode")


def _superfluous(tag: str, name: str, value: str) -> bool:
    if name == "aria-label":
        return tag != "path"
    return name in _DROPPED or (name == "opacity" and value == "1")
