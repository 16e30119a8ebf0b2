"""Draws docs/consistency.svg: one window, one late event, and what each level of consistency publishes when."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

OUT = Path(__file__).resolve().parents[1] / "docs" / "consistency.svg"
LEFT, HOUR, WIDTH, ROW = 150, 62, 900, 58
INK, FAINT, GOOD, OPEN = "#1d2733", "#9aa5b1", "#2f6f4f", "#b4572a"
HOURS = range(12)
ARRIVALS = [(1, ""), (2, ""), (6, "late, of 03:00"), (10, "an event of 10:00")]
"""Hour of arrival, and words."""
LEVELS = {
    "middle": [(4, "3 trends", GOOD), (6, "7 trends", OPEN)],
    "strong": [(10, "7 trends", GOOD)],
    "weak": [(4, "3 trends", GOOD)],
}
"""What is published when: at the window's end, when the late event comes, when the watermark passes the end."""


def text(x: float, y: float, words: str, *, fill: str = INK, anchor: str = "start", size: int = 13) -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{fill}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = FAINT, dash: str = "") -> str:
    more = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}" stroke-width="1.5"{more}/>'


def at(hour: float) -> float:
    return LEFT + hour * HOUR


def drawing() -> str:
    parts = [text(16, 26, "A window from 00:00 to 04:00, latency 6 hours", size=16)]
    axis = 64
    parts += [line(at(0), axis, at(11), axis, stroke=INK)]
    for hour in HOURS:
        parts += [line(at(hour), axis - 4, at(hour), axis + 4, stroke=INK)]
        parts += [text(at(hour), axis - 10, f"{hour:02d}:00", fill=FAINT, anchor="middle", size=11)]
    parts += [text(16, axis + 4, "arrivals")]
    for hour, words in ARRIVALS:
        colour = OPEN if "late" in words else INK
        parts += [f'<circle cx="{at(hour):g}" cy="{axis:g}" r="5" fill="{colour}"/>']
        parts += [text(at(hour), axis + 22, words, fill=colour, anchor="middle", size=11)]
    top, bottom = axis + 40, axis + 40 + ROW * len(LEVELS)
    for hour, words in ((4, "the run"), (10, "watermark 04:00")):
        parts += [line(at(hour), axis + 30, at(hour), bottom, dash="4 4")]
        parts += [text(at(hour) + 5, bottom + 16, words, fill=FAINT, size=11)]
    for row, (level, steps) in enumerate(LEVELS.items()):
        y = top + ROW * row + 22
        parts += [text(16, y + 5, level, size=15), line(at(0), y + 20, at(11.5), y + 20)]
        for index, (hour, words, colour) in enumerate(steps):
            end = steps[index + 1][0] if index + 1 < len(steps) else 11.5
            parts += [
                f'<rect x="{at(hour):g}" y="{y - 12:g}" width="{(end - hour) * HOUR - 4:g}" height="24" rx="4" '
                f'fill="{colour}" opacity="0.9"/>'
            ]
            parts += [text(at(hour) + 10, y + 5, words, fill="#ffffff")]
    height = bottom + 30
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">'
    ground = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, ground, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    OUT.write_text(drawing(), encoding="utf-8")
