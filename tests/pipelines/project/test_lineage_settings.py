"""Lineage of a profile: where events go is data; names of datasets; what Airflow is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trendlake.jobs.airflow.home import AirflowHome
from trendlake.pipelines.check import Check
from trendlake.pipelines.errors import ProfileError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile, read_profile
from trendlake.pipelines.runs.lineage_events import assertions, named, parent_of

FILE = "lineage:\n  transport: {type: file, log_file_path: told/events.ndjson}\n"
HTTP = "lineage:\n  namespace: ours\n  transport: {type: http, url: 'https://lineage.example:5000'}\n"
TASK = {
    "spark.openlineage.parentRunId": "0195f2a0-0000-7000-8000-000000000001",
    "spark.openlineage.parentJobName": "rising.publish",
    "spark.openlineage.parentJobNamespace": "trendlake.airflow",
}


def written(tmp_path: Path, text: str) -> Profile:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    return read_profile(path)


def airflow_settings(tmp_path: Path, text: str) -> dict[str, str]:
    """Those of lineage, of an Airflow with the profile `text`."""
    home = AirflowHome(Project(tmp_path, tmp_path / "state"), written(tmp_path, text))
    return {name: value for name, value in home.env().items() if "OPENLINEAGE__" in name}


def test_off_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's provider too, whatever the environment says."""
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", '{"type": "console"}')
    profile = written(tmp_path, "master: local[2]\n")
    assert profile.lineage_of(Project(tmp_path, tmp_path)) is None
    assert airflow_settings(tmp_path, "master: local[2]\n") == {"AIRFLOW__OPENLINEAGE__DISABLED": "True"}


def test_a_file_lies_under_the_state_folder(tmp_path: Path) -> None:
    lineage = written(tmp_path, FILE).lineage_of(Project(tmp_path, tmp_path / "state"))
    assert lineage is not None
    path = str(tmp_path / "state" / "told" / "events.ndjson")
    assert lineage.transport.client() == {"type": "file", "log_file_path": path, "append": True}


def test_airflow_sends_its_events_to_the_same_place(tmp_path: Path) -> None:
    settings = airflow_settings(tmp_path, HTTP)
    transport = json.loads(settings.pop("AIRFLOW__OPENLINEAGE__TRANSPORT"))
    assert (transport["type"], transport["url"], transport["timeout"]) == ("http", "https://lineage.example:5000", 5.0)
    assert settings == {
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "ours.airflow",
        "AIRFLOW__OPENLINEAGE__SPARK_INJECT_PARENT_JOB_INFO": "True",
        "OPENLINEAGE__FACETS__SOURCE_CODE_LOCATION__DISABLED": "true",
    }


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("lineage:\n  transport: {type: kafka}\n", 2, "'file', 'http'"),
        ("lineage:\n  transport: {type: my.code.Transport}\n", 2, "'file', 'http'"),
        ("lineage:\n  transport: {type: file}\n", 2, "log_file_path: Field required"),
        ("lineage:\n  transport: {type: file, log_file_path: 's3://a/b'}\n", 2, "a path on this machine"),
        ("lineage:\n  transport:\n    type: http\n    url: lineage.example\n", 4, "expected http://HOST:PORT"),
        ("lineage:\n  transport:\n    type: http\n    url: http://a\n    timout: 3\n", 5, "did you mean 'timeout'?"),
        ("lineage:\n  namespce: a\n  transport: {type: http, url: http://a}\n", 2, "did you mean 'namespace'?"),
        ("lineage: {}\n", 1, "lineage.transport: Field required"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        written(tmp_path, text)
    assert message in str(caught.value)
    assert f"p.yaml:{line}:" in str(caught.value)


@pytest.mark.parametrize(
    "secret",
    [
        "url: http://a\n    auth: {type: api_key, apiKey: swordfish}",
        "url: http://a:swordfish@b",
        "url: http://a\n    custom_headers: {Authorization: Bearer swordfish}",
    ],
)
def test_a_secret_is_refused_and_not_shown(tmp_path: Path, secret: str) -> None:
    with pytest.raises(ProfileError, match="OPENLINEAGE__TRANSPORT__AUTH__APIKEY") as caught:
        written(tmp_path, f"lineage:\n  transport:\n    type: http\n    {secret}\n")
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/srv/lake/results/rising", ("file", "/srv/lake/results/rising")),
        ("file:///srv/lake/results/rising", ("file", "/srv/lake/results/rising")),
        ("s3a://lake/t/results/rising", ("s3://lake", "t/results/rising")),
        ("s3a://key:swordfish@lake/results/rising", ("s3://lake", "results/rising")),
        ("gs://lake/results/rising", ("gs://lake", "results/rising")),
        ("hdfs://node:8020/lake/rising", ("hdfs://node:8020", "/lake/rising")),
        ("abfss://box@lake.dfs.core.windows.net/t", ("abfss://box@lake.dfs.core.windows.net", "/t")),
    ],
)
def test_datasets_are_named_as_openlineage_names_files(path: str, name: tuple[str, str]) -> None:
    assert named(path) == name


def test_the_parent_is_what_airflow_says() -> None:
    """Its task's run; of its DAG's run only what is there; nothing where no task has started the application."""
    parent = parent_of(TASK)
    assert parent is not None
    assert (parent.run.runId, parent.job.name) == (TASK["spark.openlineage.parentRunId"], "rising.publish")
    assert parent.root is None
    assert parent_of({"spark.openlineage.parentRunId": "x"}) is None


def test_what_could_not_be_judged_has_not_failed() -> None:
    checks = [Check(str(success), success, "", "") for success in (True, False, None)]
    assert [(one.assertion, one.success) for one in assertions(checks)] == [("True", True), ("False", False)]
