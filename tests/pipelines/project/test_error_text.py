"""What the run record says of an exception: the cause, in one line."""

from __future__ import annotations

from trendlake.pipelines.error_text import LENGTH, in_words
from trendlake.pipelines.errors import ToleranceError

JAVA = (
    "An error occurred while calling o7.save.\n"
    ": org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/x.\n"
    + "\tat org.apache.spark.Frame.call(Frame.scala:1)\n"
    * 200
    + "Caused by: java.io.IOException: No space left on device\n"
    "\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n"
    "\t... 40 more\n"
)
WORKER = (
    "\n  An exception was thrown from the Python worker:\n"
    "Traceback (most recent call last):\n"
    '  File "/x/worker.py", line 7, in main\n'
    "    process()\n"
    "ZeroDivisionError: division by zero\n"
)


def test_the_deepest_cause_is_told() -> None:
    """Java's stack takes pages; what happened stands below it."""
    text = in_words(RuntimeError(JAVA))
    assert text == (
        "RuntimeError: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to "
        "file:/x. Caused by: java.io.IOException: No space left on device"
    )


def test_a_worker_s_exception_is_told() -> None:
    assert in_words(RuntimeError(WORKER)) == "RuntimeError: ZeroDivisionError: division by zero"


def test_mistakes_are_told_by_code() -> None:
    assert in_words(ToleranceError("too many rows")) == "[TOLERANCE] too many rows"


def test_a_long_message_keeps_both_ends() -> None:
    text = in_words(RuntimeError("first " + "x " * 5000 + "last"))
    assert text.startswith("RuntimeError: first")
    assert text.endswith("last")
    assert len(text) <= LENGTH
