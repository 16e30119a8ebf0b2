"""The report of a run: one self-contained HTML page and a PNG of its chart.

`read_*` read facts from Delta tables and YAML, `view` turns facts into text, `chart` and `render` write the files.
"""

from pipelines.report.build import ReportPaths, build_report
from pipelines.report.errors import RunNotFoundError

__all__ = ["ReportPaths", "RunNotFoundError", "build_report"]
