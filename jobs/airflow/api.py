"""The few calls of Airflow's REST API (v2) that the demo and the tests make."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from trendlake.jobs.airflow.login import USER

Json = dict[str, Any]
TRIES = 10
ANSWER_SECONDS = 180
"""Longer than a server waits for its database (`jobs.airflow.home`)."""


class AirflowApiError(Exception):
    """Airflow refused a request; the message has its answer."""


class DatabaseBusyError(AirflowApiError):
    """Airflow's database had a concurrent writer."""


class AirflowApi:
    """A client of an Airflow with the login of `jobs.airflow.login`. Raises AirflowApiError for refused requests."""

    def __init__(self, url: str, password: str) -> None:
        self.url = url
        self._token = ""
        self._token = self._call("POST", "/auth/token", {"username": USER, "password": password})["access_token"]

    def import_errors(self) -> list[Json]:
        """Each with `filename` and `stack_trace`."""
        errors: list[Json] = self._call("GET", "/api/v2/importErrors")["import_errors"]
        return errors

    def dag_ids(self) -> set[str]:
        return {dag["dag_id"] for dag in self._call("GET", "/api/v2/dags")["dags"]}

    def pause(self, dag_id: str, paused: bool) -> None:
        self._call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": paused})

    def trigger(self, dag_id: str, run_id: str, params: Json) -> None:
        body = {"dag_run_id": run_id, "logical_date": None, "conf": params}
        self._call("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)

    def clear(self, dag_id: str, run_id: str, task_id: str, *, downstream: bool = True) -> None:
        """Runs a task of a run again, whatever its state; with all tasks downstream, or by itself."""
        body = {
            "dag_run_id": run_id,
            "task_ids": [task_id],
            "include_downstream": downstream,
            "only_failed": False,
            "dry_run": False,
        }
        self._call("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", body)

    def new_version(self, uri: str) -> bool:
        """Creates an event of the asset, which starts the DAGs scheduled on it; returns whether the asset exists."""
        path = f"/api/v2/assets?uri_prefix_pattern={quote(uri, safe='')}&limit=1000"
        asset_ids = [asset["id"] for asset in self._call("GET", path)["assets"] if asset["uri"] == uri]
        for asset_id in asset_ids:
            self._call("POST", "/api/v2/assets/events", {"asset_id": asset_id, "extra": {}})
        return bool(asset_ids)

    def give_up(self, dag_id: str, run_id: str) -> None:
        """Marks a run and its unfinished tasks as failed."""
        self._call("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}", {"state": "failed"})

    def waiting(self, dag_id: str) -> int:
        """The number of queued asset events for which the DAG has no run yet."""
        try:
            return len(self._call("GET", f"/api/v2/dags/{dag_id}/assets/queuedEvents")["queued_events"])
        except AirflowApiError as error:
            if ": 404 " not in str(error):  # Airflow's answer where there are none
                raise
            return 0

    def run_state(self, dag_id: str, run_id: str) -> str:
        return str(self._call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}")["state"])

    def runs(self, dag_id: str) -> list[Json]:
        """The newest runs, each with `dag_run_id`, `state`, `data_interval_start`, `data_interval_end`."""
        runs: list[Json] = self._call("GET", f"/api/v2/dags/{dag_id}/dagRuns?order_by=-id")["dag_runs"]
        return runs

    def tasks(self, dag_id: str, run_id: str) -> list[Json]:
        """Each with `task_id`, `state` (None: not yet), `try_number`, `start_date`, `duration`."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances"
        tasks: list[Json] = self._call("GET", path)["task_instances"]
        return tasks

    def log(self, dag_id: str, run_id: str, task_id: str, attempt: int) -> list[str]:
        """The log of one attempt of a task, line by line."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/logs/{attempt}"
        entries = self._call("GET", f"{path}?full_content=true")["content"]
        return [entry["event"] if isinstance(entry, dict) else str(entry) for entry in entries]

    def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        """Calls the API; tries again if SQLite had a concurrent writer, because that request was rolled back."""
        for _ in range(TRIES - 1):
            try:
                return self._call_once(method, path, body)
            except DatabaseBusyError:
                time.sleep(1.0)
        return self._call_once(method, path, body)

    def _call_once(self, method: str, path: str, body: Json | None = None) -> Json:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                document: Json = json.load(answer)
                return document
        except urllib.error.HTTPError as error:
            with error:
                reply = error.read().decode(errors="replace")
            kind = DatabaseBusyError if error.code == 500 and "Database error" in reply else AirflowApiError
            raise kind(f"{method} {path}: {error.code} {reply}") from error
