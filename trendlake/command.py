"""Entry point of the `trendlake` command."""

from __future__ import annotations

from trendlake.jobs.terminal import own_process


def main() -> None:
    own_process.begin()
    from trendlake.jobs.main import app

    app(prog_name="trendlake")


if __name__ == "__main__":
    main()
