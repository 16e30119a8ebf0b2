"""Entry point of the `trendlake` command."""

from __future__ import annotations

from trendlake.jobs.main import app


def main() -> None:
    app(prog_name="trendlake")


if __name__ == "__main__":
    main()
