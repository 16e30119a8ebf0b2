"""The old name of `trendlake.pytest_plugin`; it goes with version 0.3."""

import pytest

raise pytest.UsageError("the plugin jobs.pytest_patterns is now called trendlake.pytest_plugin: use that name")
