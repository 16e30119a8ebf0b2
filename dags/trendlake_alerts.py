"""What Airflow calls when a run fails, tries again or is late: the reason in one line, in the task's log and, where the
connection `trendlake_alerts` says to which address, sent there."""

from __future__ import annotations

import json
import logging
import re
import urllib.request
from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from pipelines.redaction import redacted

CONNECTION = "trendlake_alerts"
"""A web hook that takes `{"text": LINE}` by POST, as Slack's, Mattermost's and others' do."""
SECONDS = 10.0
"""What a web hook may take to answer."""
LENGTH = 500
REASON = re.compile(r"(?:.*:\d+:\d+: )?\[(?P<code>[A-Z][A-Z_]+)\] \S.*")
"""How a `trendlake` command reports an error: `[TOLERANCE] ...`, after file, line and column where it has a place."""
EXIT_CODE = re.compile(r"Error code is: (-?\d+)")

log = logging.getLogger("airflow.task")


def tried(context: Mapping[str, Any]) -> None:
    """An attempt has failed, another follows: its log says why."""
    log.error(failure(context))


def failed(context: Mapping[str, Any]) -> None:
    """The last attempt has failed."""
    line = failure(context)
    log.error(line)
    send(line)


def late(context: Mapping[str, Any]) -> None:
    """A run is not done at its deadline."""
    run, deadline = context["dag_run"], context["deadline"]
    line = f"{run['dag_id']}: run {run['dag_run_id']} is late: not done by {deadline['deadline_time']}"
    log.error(line)
    send(line)


def failure(context: Mapping[str, Any]) -> str:
    """Which attempt of which task of which run failed, and why, in one line."""
    task = context["task_instance"]
    reason = reason_of(context.get("exception"))
    return f"{task.dag_id}: {task.task_id} of run {task.run_id} failed at attempt {task.try_number}: {reason}"


def reason_of(error: object) -> str:
    """One line of an exception of SparkSubmitOperator, which quotes the end of what the application said: the last
    mistake told there, else how the application ended."""
    text = str(error or "")
    told = [line for line in text.splitlines() if REASON.fullmatch(line)]
    if told:
        line = told[-1]
    elif ended := EXIT_CODE.search(text):
        line = f"the Spark application ended with code {ended[1]} and gave no reason: its log is above"
    elif text:
        line = f"{type(error).__name__}: {text.splitlines()[0]}"
    else:
        line = "its process was killed, or its machine is gone"
    return redacted(line)[:LENGTH]


def send(line: str) -> None:
    """Where there is no such connection, nowhere; a web hook that does not answer is told of in the log."""
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
