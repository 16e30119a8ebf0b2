"""The local Airflow asks for the password of its start: other users of the machine reach it too."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from trendlake.jobs.airflow.api import AirflowApi, AirflowApiError
from trendlake.jobs.airflow.home import AirflowHome
from trendlake.jobs.airflow.login import new_password, password_of, passwords_file
from trendlake.pipelines.project.paths import Project


def test_each_start_has_a_password_that_only_its_user_can_read(tmp_path: Path) -> None:
    project = Project(tmp_path, tmp_path / "state")
    project.make_state()
    first = new_password(project)
    assert password_of(project) == first
    assert new_password(project) != first
    assert password_of(project) != first
    assert passwords_file(project).stat().st_mode & 0o777 == 0o600
    assert project.state.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in passwords_file(project).parent.iterdir()] == ["passwords.json"]


def test_a_state_folder_that_somebody_has_opened_stays_so(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o750)
    Project(tmp_path, tmp_path / "state").make_state()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o750


def no_way_in_without_the_password(home: AirflowHome) -> None:
    """Of the Airflow that runs in `home` (tests/dags/test_run.py): neither to read nor to trigger; a token of nobody's
    is not given out; with the password both work."""
    for path in ("/api/v2/dags", "/api/v2/connections"):
        assert refused(f"{home.url}{path}") == 401
    assert refused(f"{home.url}/auth/token") in (401, 403)
    with pytest.raises(AirflowApiError, match=": 401 "):
        AirflowApi(home.url, "admin")
    api = AirflowApi(home.url, password_of(home.project))
    assert isinstance(api.dag_ids(), set)
    logged = home.log("api-server").read_text()
    assert password_of(home.project) not in logged


def refused(url: str) -> int:
    """The status with which a request without a login is answered."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url, timeout=60).close()
    caught.value.close()
    return caught.value.code
