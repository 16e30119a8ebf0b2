"""Secrets of connections are in no message: not in the run record's error, not on the terminal, not in an error of the
profile itself."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import typer

from tests.support.secrets_of_services import SECRETS
from trendlake.jobs.terminal.outcome import guarded
from trendlake.pipelines import redaction
from trendlake.pipelines.errors import ProfileError
from trendlake.pipelines.project.profile import read_profile
from trendlake.pipelines.redaction import is_secret, keep_secret, redacted

KEY = "wJalrXUtnFEMI/K7MDENG"
PROFILE = f"""\
master: local[2]
spark:
  spark.hadoop.fs.s3a.secret.key: {KEY}
  spark.hadoop.fs.s3a.endpoint: storage.example
"""


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "fs.s3a.access.key",
        "MY_PASSWORD",
        "spark.token",
        "AWS_SECRET_ACCESS_KEY",
        "fs.azure.account.key.x.dfs.core.windows.net",
    ],
)
def test_secret_by_name(name: str) -> None:
    assert is_secret(name)


def test_other_settings_are_shown() -> None:
    for name in ("spark.driver.memory", "spark.master", "spark.hadoop.fs.s3a.endpoint", "spark.sql.shuffle.partitions"):
        assert not is_secret(name)


def test_values_of_the_profile_are_hidden(tmp_path: Path) -> None:
    """Once a profile is read, its secrets are replaced wherever they stand, also as addresses write them."""
    path = tmp_path / "p.yaml"
    path.write_text(PROFILE)
    read_profile(path)
    said = redacted(f"403 for {KEY} at storage.example?sig=wJalrXUtnFEMI%2FK7MDENG")
    assert said == "403 for *** at storage.example?sig=***"


def test_values_of_the_environment_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_PASSWORD", "correct horse")
    assert redacted("login with correct horse failed") == "login with *** failed"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("fs.s3a.secret.key=abcdefgh, x=1", "fs.s3a.secret.key=***, x=1"),
        ("password: hunter22", "password: ***"),
        ("{'token': 'abc123', 'a': 1}", "{'token': '***', 'a': 1}"),
        ("s3a://AKIA:abc+def@bucket/x not found", "s3a://***@bucket/x not found"),
        ("https://storage.example/x?y=1", "https://storage.example/x?y=1"),
        ("no rows for carrier=UA at 09:00:00", "no rows for carrier=UA at 09:00:00"),
    ],
)
def test_what_is_given_to_a_secret_name_is_hidden(said: str, shown: str) -> None:
    assert redacted(said) == shown


def test_short_and_plain_values_do_not_spoil_messages() -> None:
    keep_secret({"spark.token.renewal": "true", "a.password": "x", "secret.file": "/etc"})
    assert redacted("it is true that x lies in /etc") == "it is true that x lies in /etc"


def test_a_command_that_fails_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither in the message nor in the traceback."""
    keep_secret({"fs.s3a.secret.key": KEY})

    @guarded
    def fails() -> None:
        raise RuntimeError(f"cannot sign with {KEY}")

    with pytest.raises(typer.Exit):
        fails()
    shown = capsys.readouterr()
    assert KEY not in shown.out + shown.err
    assert "cannot sign with ***" in shown.err


@pytest.mark.parametrize(
    "broken", [f"  spark.hadoop.fs.s3a.secret.key: [{KEY}", f"  secret.key: {KEY}: {KEY}", f"token: {KEY}"]
)
def test_a_wrong_profile_shows_none(tmp_path: Path, broken: str) -> None:
    """The line that an error points at may be the one with the secret."""
    path = tmp_path / "p.yaml"
    path.write_text(f"spark:\n{broken}\n")
    with pytest.raises(ProfileError) as caught:
        read_profile(path)
    assert KEY not in str(caught.value)


HARMLESS = (
    "password authentication failed for user etl",
    "the token of commit 12 is not there: run `trendlake run x`",
    "plan 3f9a1c0b5d2e at version 12, run_id=scheduled__2026-01-05T00:00:00+00:00",
    "https://storage.example:8443/a/b?x=1&y=2 answered 503",
    "s3a://bucket/warehouse/results/x is not a Delta table",
    "key: origin, time_hour; 5 rows repeat a key",
    "group_by: [carrier]: no column 'carrier' in basic types",
    "commit 5c6466f4a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5",
    "[SIGNIFICANT] sigma=3 design=x, code=7",
)


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_of_many_houses_are_hidden(name: str) -> None:
    said, secret = SECRETS[name]
    assert secret in said
    shown = redacted(said)
    assert secret not in shown
    assert "***" in shown


def test_they_are_forty() -> None:
    assert len(SECRETS) >= 40


@pytest.mark.parametrize("said", HARMLESS)
def test_what_is_no_secret_is_shown(said: str) -> None:
    assert redacted(said) == said


@pytest.mark.parametrize("name", SECRETS)
def test_twice_is_as_once(name: str) -> None:
    once = redacted(SECRETS[name][0])
    assert redacted(once) == once


def test_long_texts_take_no_long_time() -> None:
    """A stack trace of megabytes must not keep a run's record waiting: no shape goes back over what it has read."""
    for piece in (
        "password=",
        "://a:b",
        "eyJ" + "a" * 50,
        "'",
        '\\"',
        "-----BEGIN RSA PRIVATE KEY-----",
        "bearer ",
        "<token>",
    ):
        began = time.process_time()
        redacted(piece * 20_000)
        assert time.process_time() - began < 10, piece
