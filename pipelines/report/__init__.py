"""The report of a run: one self-contained HTML page and a PNG of its chart.

`read_*` turn Delta tables and YAML into facts, `view` facts into words, `chart` and `render` words into
files.
"""

from pipelines.report.build import ReportPaths, build_report
from pipelines.report.errors import RunNotFoundError

__all__ = ["ReportPaths", "RunNotFoundError", "build_report"]
