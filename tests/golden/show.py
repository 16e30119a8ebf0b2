"""Prints cases of the golden corpus with the rows that they give now: `python -m tests.golden.show 'drawn 17'`."""

from __future__ import annotations

import sys

from tests.golden.corpus import KINDS, answer, entries


def main() -> None:
    """Every case of a name given, of any kind."""
    for kind in KINDS:
        for entry in entries(kind):
            if entry.name in sys.argv[1:]:
                print(f"# {kind}: {entry.name}", dict(entry.query), *entry.rows, answer(entry), "", sep="\n")


if __name__ == "__main__":
    main()
