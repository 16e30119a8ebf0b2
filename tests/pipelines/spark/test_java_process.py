"""What Java writes to its stderr reaches the terminal, but for the line that says nothing."""

from __future__ import annotations

import os

import pytest

from trendlake.pipelines.spark.java_process import _forward


def test_only_the_line_about_incubator_modules_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()
    lines = [
        "WARNING: Using incubator modules: jdk.incubator.vector",
        "WARNING: Using incubator modules: jdk.incubator.other",
        "java.lang.OutOfMemoryError: Java heap space",
        "half a line",
    ]
    os.write(write, "\n".join(lines).encode())
    os.close(write)
    _forward(read)
    assert capfd.readouterr().err == "\n".join(lines[1:])
