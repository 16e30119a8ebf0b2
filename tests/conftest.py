"""One Spark session for the whole run of the tests; each test has a warehouse of its own."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import typer.main
import typer.testing
from hypothesis import settings

import tests.random.profile

settings.load_profile("ci")

pytest_plugins = ["tests.support.lakes", "tests.support.sharing", "tests.support.summary"]
typer.testing._get_command = cache(typer.main.get_command)
"""The words and options of all commands take a twentieth of a second to put together, and tests type a thousand."""
CHAOS = "TRENDLAKE_CHAOS" in os.environ
"""Whether `make chaos` runs the tests: those marked `chaos` too, and more draws of those marked `more_in_chaos`."""
DRAWS = int(os.environ.get("TRENDLAKE_CHAOS", "1"))
"""How many histories a test draws for each of its cases."""
PART = os.environ.get("TRENDLAKE_CHAOS_PART", "")
"""Of `make chaos` done in parts: another one draws other histories and other kills."""
ROOT = Path(__file__).resolve().parents[1]
SET_UP = Path(os.environ.get("TRENDLAKE_STATE", ROOT / ".trendlake")).resolve()
"""What `make setup` has left: jars and Java, which the tests use. The project's own tables lie there too, which no test
may touch."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": " ".join(
        [
            "-Duser.timezone=UTC -XX:+UseSerialGC -Xmn400m",
            # Short lives: the first compiler only, which halves the time a cold JVM takes.
            "-XX:TieredStopAtLevel=1",
            # It compiles what is called eight times, not 200 times: thousands of plans are planned by the same code.
            "-XX:Tier0InvokeNotifyFreqLog=3 -XX:Tier3InvocationThreshold=8 -XX:Tier3MinInvocationThreshold=4",
            "-XX:Tier3CompileThreshold=80 -XX:Tier3BackEdgeThreshold=3000",
        ]
    ),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
}
ROOM = "-Xms2g -Xmn900m"
"""For the session of a process of tests: where memory grows little by little, all of it is gone through each time."""
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""For the many small runs of the pipeline's tests: on some dozen rows to compile a plan takes longer than to run it."""


RARELY = (50_000, 20, 20)
"""Of the collector of garbage: by default it begins after each 700 new objects, and goes through all of them every
70,000: three quarters of the time in which Python files are parsed."""
MEMORY, MEMORY_NOW = Path("/dev/shm"), Path("/proc/meminfo")
ROOM_FOR_FILES = 6 << 30
"""Bytes: several times what all tests have in files at one time."""


def memory_has_room() -> bool:
    """Whether the tests may keep their files in memory: there is enough of it, and programs may start from there."""
    try:
        disk = os.statvfs(MEMORY)
        free = {name: int(size) << 10 for name, size in re.findall(r"(\w+): +(\d+) kB", MEMORY_NOW.read_text())}
    except OSError:
        return False
    room = min(disk.f_bavail * disk.f_frsize, free.get("MemAvailable", 0))
    return room >= ROOM_FOR_FILES and not disk.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK)


if memory_has_room():  # a small file takes a tenth of the time, and the tests make a hundred thousand
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of `make chaos` wait for it, and those that repeat others for `EXAMPLES=all`."""
    for item in items:
        if not CHAOS and item.get_closest_marker("chaos"):
            item.add_marker(pytest.mark.skip(reason="`make chaos` runs it"))
        if not (CHAOS or tests.random.profile.ALL) and item.get_closest_marker("repeats"):
            item.add_marker(pytest.mark.skip(reason="`make test EXAMPLES=all` runs it"))


def pytest_collection_finish() -> None:
    """What is there before the first test stays till the last: the collector of garbage need not look at it again and
    again, which took a twentieth of the time of the tests of the engine."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARELY)


@pytest.fixture(scope="session", autouse=True)
def state_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands that are told of no other state folder use one of the tests', which stays without tables: a test that
    makes some has a folder of its own. The project's own is as it was, so that the tests pass a second time too."""
    before, state = listing(SET_UP), tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TRENDLAKE_PROJECT", "TRENDLAKE_PROFILE"):
            patch.delenv(name, raising=False)
        patch.setenv("TRENDLAKE_STATE", str(state))
        patch.setenv("TRENDLAKE_JARS", os.environ.get("TRENDLAKE_JARS", str(SET_UP / "jars")))
        if "JAVA_HOME" not in os.environ and (SET_UP / "java_home").is_file():
            patch.setenv("JAVA_HOME", (SET_UP / "java_home").read_text().strip())
        yield
    tables = [str(path.relative_to(state)) for path in state.rglob("_delta_log")]
    assert not tables, f"tests share the state folder of the session: {tables}"
    after = listing(SET_UP)
    touched = sorted({name for name, _ in before ^ after})
    assert not touched, f"a test (or somebody else meanwhile) has touched the project's own state {SET_UP}: {touched}"


def listing(state: Path) -> set[tuple[str, tuple[int, int]]]:
    """The files of a state folder, but those that `make setup` alone writes, with size and time of change."""
    files: set[tuple[str, tuple[int, int]]] = set()
    for folder, names, members in os.walk(state):
        if Path(folder) == state:
            names[:] = [name for name in names if name not in ("tools", "jars")]
        for path in (Path(folder, name) for name in members):
            facts = path.stat()
            files.add((str(path.relative_to(state)), (facts.st_size, facts.st_mtime_ns)))
    return files


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The session that `pipelines.spark.session` starts: two cores, Delta from the jars of the set-up, no network."""
    from trendlake.pipelines.project.paths import find_project
    from trendlake.pipelines.project.profile import Profile
    from trendlake.pipelines.spark.session import start_session

    project = find_project(ROOT)
    scratch = str(tmp_path_factory.mktemp("spark"))
    settings = SETTINGS | FEW_ROWS
    settings["spark.driver.extraJavaOptions"] += f" {ROOM}"
    settings |= {"spark.sql.warehouse.dir": f"{scratch}/tables", "spark.local.dir": f"{scratch}/local"}
    session = start_session(project, Profile(master="local[2]", spark=settings), "trendlake tests")
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def tables_of_the_module() -> Iterator[None]:
    """Delta holds what it has read of each table's log for an hour, and the collector of garbage goes through it all:
    no test of another file asks for it again."""
    yield
    loaded = sys.modules.get("pyspark.sql")
    if loaded and (spark := loaded.SparkSession.getActiveSession()):
        from trendlake.pipelines.spark.jvm import DELTA_LOG, java_class

        java_class(spark, DELTA_LOG).clearCache()


@pytest.fixture(scope="module")
def many_rows(spark: object) -> Iterator[None]:
    """For a file of tests over a year of flights: plans are compiled, as those of users are."""
    conf = spark.conf  # type: ignore[attr-defined]
    for name in FEW_ROWS:
        conf.unset(name)
    yield
    for name, value in FEW_ROWS.items():
        conf.set(name, value)


@pytest.fixture
def project(tmp_path: Path) -> object:
    """This project's patterns and contracts, with a state folder of the test's own."""
    from trendlake.pipelines.project.paths import find_project

    return replace(find_project(ROOT), state=tmp_path / "state")
