"""The colours of the page and its pictures: each a role, in light and dark.

Pictures are drawn once, in the light colours; `inline_svg` replaces each by its CSS variable, so that the
browser (or the printer) chooses the scheme. Series colours keep a contrast of 3:1 with both backgrounds.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "ink": "#16202c",
    "muted": "#5a6776",
    "line": "#dfe4ea",
    "band": "#e8f0f8",
    "paper": "#ffffff",
    "series1": "#1565a7",
    "series2": "#c2540a",
    "series3": "#138066",
    "series4": "#9c3f8a",
    "series5": "#8a6d00",
    "series6": "#4b5fc4",
    "series7": "#b3354a",
    "rest": "#8792a0",
}

DARK: Mapping[str, str] = {
    "ink": "#e8edf3",
    "muted": "#9aa7b6",
    "line": "#2b3642",
    "band": "#1b2b3c",
    "paper": "#12181f",
    "series1": "#5aaee8",
    "series2": "#f2955a",
    "series3": "#4cc3a1",
    "series4": "#d98ac8",
    "series5": "#d3b443",
    "series6": "#97a6ff",
    "series7": "#f0808f",
    "rest": "#7c8997",
}

ROLE_OF: Mapping[str, str] = {colour: role for role, colour in LIGHT.items()}


def variables(colours: Mapping[str, str]) -> str:
    """The palette as CSS declarations."""
    return "".join(f"--{role}:{colour};" for role, colour in colours.items())
