"""Entry point of the `trendlake` command: checks that the packages it imports are its own, then starts it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("cep_core", "pipelines", "jobs")
WRONG_USAGE = 2


def main() -> None:
    message = shadowed()
    if message is not None:
        print(message, file=sys.stderr)
        raise SystemExit(WRONG_USAGE)
    from trendlake.jobs.main import app

    app(prog_name="trendlake")


def shadowed() -> str | None:
    """A line that names a package which hides one of ours on Python's path; None where none does."""
    installed = Path(__file__).resolve().parents[1]
    for name in PACKAGES:
        spec = find_spec(name)
        places = [Path(place).resolve() for place in (spec.submodule_search_locations or [])] if spec else []
        if installed / name not in places:
            other = places[0] if places else (spec.origin if spec else "nowhere")
            return (
                f"trendlake: the package '{name}' is imported from {other}, not from {installed / name}: "
                "rename the other package, or take its folder off PYTHONPATH"
            )
    return None


if __name__ == "__main__":
    main()
