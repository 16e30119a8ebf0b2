"""The work of the command for callers from Python: `trendlake.Project`."""

from trendlake.jobs.python.project import Project
from trendlake.jobs.python.results import Results

__all__ = ["Project", "Results"]
