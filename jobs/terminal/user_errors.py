"""Errors in the terms of the user, also those of other libraries."""

from __future__ import annotations

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.errors import NotInstalledError
from trendlake.pipelines.project.shipped import install_command
from trendlake.pipelines.storage_errors import storage_error

PACKAGES = {
    "spark": {
        "altair",
        "duckdb",
        "delta",
        "deltalake",
        "great_expectations",
        "jinja2",
        "markupsafe",
        "openlineage",
        "pandas",
        "py4j",
        "pyspark",
        "vl_convert",
    },
    "airflow": {"airflow", "psutil", "sqlalchemy"},
}
"""The packages that each extra of the installation brings, by the name that is imported."""


def user_error(error: Exception) -> TrendlakeError | None:
    """The error in the user's terms; None for an internal one."""
    if isinstance(error, TrendlakeError):
        return error
    return not_installed(error) or storage_error(error)


def not_installed(error: Exception) -> TrendlakeError | None:
    """The user error for a ModuleNotFoundError of a package that an extra brings; None for other errors."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    for extra, packages in PACKAGES.items():
        if name in packages:
            message = f"this needs packages that are not installed: there is no {name}"
            return NotInstalledError(message, hint=install_command(extra))
    return None
