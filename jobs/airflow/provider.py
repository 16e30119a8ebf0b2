"""The entry of this package among Airflow's providers: `airflow providers list`, and its page."""

from __future__ import annotations

from importlib.metadata import metadata


def get_provider_info() -> dict[str, object]:
    """The entry point `apache_airflow_provider`, by Airflow's schema of provider information."""
    package = metadata("trendlake")
    return {"package-name": "trendlake", "name": "Trendlake", "description": package["Summary"]}
