"""Callbacks for runs that fail, are retried or are late. They write one line with the reason to the task's log, and
post it to the web hook of the connection `trendlake_alerts`, if there is one."""

from __future__ import annotations

import json
import logging
import re
import urllib.request
from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from trendlake.pipelines.redaction import redacted

CONNECTION = "trendlake_alerts"
"""A web hook that takes `{"text": LINE}` by POST, such as that of Slack or Mattermost."""
SECONDS = 10.0
"""Timeout of a web hook."""
LENGTH = 500
REASON = re.compile(r"(?:.*:\d+:\d+: )?\[(?P<code>[A-Z][A-Z_]+)\] \S.*")
"""How a `trendlake` command reports an error: `[TOLERANCE] ...`, after file, line and column where it has a place."""
EXIT_CODE = re.compile(r"Error code is: (-?\d+)")

log = logging.getLogger("airflow.task")


class MembersFailedError(AirflowException):
    """Some patterns of a batch failed; the others are published. `mistake`: whether another attempt would fail with
    the same error for each of them."""

    def __init__(self, message: str, *, mistake: bool = False) -> None:
        super().__init__(message)
        self.mistake = mistake


def tried(context: Mapping[str, Any]) -> None:
    """Logs why an attempt failed that another one follows."""
    log.error(failure(context))


def failed(context: Mapping[str, Any]) -> None:
    """Logs and sends why the last attempt failed."""
    line = failure(context)
    log.error(line)
    send(line)


def late(context: Mapping[str, Any]) -> None:
    """Logs and sends that a run is not done at its deadline."""
    run, deadline = context["dag_run"], context["deadline"]
    line = f"{run['dag_id']}: run {run['dag_run_id']} is late: not done by {deadline['deadline_time']}"
    log.error(line)
    send(line)


def failure(context: Mapping[str, Any]) -> str:
    """The run, the task and the attempt that failed, and why, in one line."""
    task = context["task_instance"]
    reason = reason_of(context.get("exception"))
    return f"{task.dag_id}: {task.task_id} of run {task.run_id} failed at attempt {task.try_number}: {reason}"


def reason_of(error: object) -> str:
    """One line of an exception of SparkSubmitOperator, which quotes the end of what the application said: the last
    error reported there, else how the application ended."""
    text = str(error or "")
    errors = [line for line in text.splitlines() if REASON.fullmatch(line)]
    if isinstance(error, MembersFailedError):
        line = text
    elif errors:
        line = errors[-1]
    elif ended := EXIT_CODE.search(text):
        line = f"the Spark application ended with code {ended[1]} and gave no reason: its log is above"
    elif text:
        line = f"{type(error).__name__}: {text.splitlines()[0]}"
    else:
        line = "its process was killed, or its machine is gone"
    return redacted(line)[:LENGTH]


def send(line: str) -> None:
    """Posts a line to the web hook of the connection, if there is one; a web hook that does not answer is logged."""
    try:
        connection = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        return
    body = json.dumps({"text": line}).encode()
    try:
        request = urllib.request.Request(address(connection), body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=SECONDS).close()
    except (OSError, ValueError) as error:
        log.warning("%s took no alert: %s", CONNECTION, type(error).__name__)  # its address may be the secret


def address(connection: Any) -> str:
    """The URL of a connection written as a URL, or with a whole URL as its host."""
    host = connection.host or ""
    if "://" in host:
        return str(host)
    port = f":{connection.port}" if connection.port else ""
    return f"{connection.conn_type}://{host}{port}/{connection.schema or ''}"
