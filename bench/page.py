"""docs/benchmarks.md: the numbers of one `make bench`, and the machine they were measured on.

The page has no date, so that equal numbers give an equal page.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from bench.measured import Measured

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
PACKAGES = ("numba", "numpy", "pyarrow", "pyspark", "delta-spark")
HEAD = """# Benchmarks

`make bench` measures these numbers and writes this page. Compare ratios and bars rather than absolute numbers, because
they depend less on the machine. A bar is the bound that a measure must meet. Times are processor times of one core
unless the measure says otherwise.
"""


def machine() -> str:
    """The processor, its cores, the memory and the versions of what is measured, in one sentence."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Measured on {os.cpu_count()} cores ({_processor()}) with {gigabytes:.0f} GiB of memory, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {packages}."
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    named = re.search(r"^model name\s*: (.+)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return named.group(1) if named else platform.machine()


def benchmarks_page(sections: Mapping[str, Sequence[Measured]], measured_on: str, page: str = "") -> str:
    """The page as Markdown: one table for each section that has rows, in their order; a section without rows stays as
    it is on `page`, the page until now."""
    earlier = {part.split("\n", 1)[0]: part.rstrip() for part in page.split("\n## ")[1:]}
    parts = [HEAD, f"{measured_on}\n"]
    for title, rows in sections.items():
        if rows:
            parts.append(f"## {title}\n")
            parts.append(
                "\n".join(["| measure | value | unit | bar | note |", "|---|---|---|---|---|", *map(_line, rows)])
            )
            parts.append("")
        elif title in earlier:
            parts += [f"## {earlier[title]}", ""]
    return "\n".join(parts)


def _line(row: Measured) -> str:
    cells = (row.measure, f"{row.value:,.2f}", row.unit, row.judged, row.note)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
