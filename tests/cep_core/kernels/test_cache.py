"""Nobody else can have written the machine code that is run: numba's index is a pickle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.disks import full, small_disk
from trendlake.cep_core.cache_folder import cache_folder, made_private

OTHER_USER = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files, for a user without a home or another place for caches."""
    for name in ("TRENDLAKE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"trendlake-{os.getuid()}"


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_a_new_folder_is_private(temporary: Path) -> None:
    """Whatever the umask says."""
    before = os.umask(0)
    try:
        folder = cache_folder("kernels-x")
    finally:
        os.umask(before)
    assert folder == temporary / "kernels-x"
    assert (mode(temporary), mode(folder)) == (0o700, 0o700)
    assert cache_folder("kernels-x") == folder


@pytest.mark.parametrize("planted", ["", "kernels-x"])
def test_a_folder_that_others_can_write_is_not_taken(temporary: Path, planted: str) -> None:
    """The name under /tmp is one that anybody can take first."""
    (temporary / planted).mkdir(parents=True)
    (temporary / planted).chmod(0o777)
    folder = cache_folder("kernels-x")
    assert temporary not in (folder, *folder.parents)
    assert mode(folder) == 0o700
    assert mode(temporary / planted) == 0o777


@needs_root
@pytest.mark.parametrize("planted", ["", "kernels-x"])
def test_a_folder_of_another_user_is_not_taken(temporary: Path, planted: str) -> None:
    (temporary / planted).mkdir(parents=True, mode=0o755)
    os.chown(temporary / planted, OTHER_USER, OTHER_USER)
    folder = cache_folder("kernels-x")
    assert temporary not in (folder, *folder.parents)


@pytest.mark.parametrize("planted", ["", "kernels-x"])
def test_a_link_is_not_followed(temporary: Path, planted: str, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    (temporary / planted).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    (temporary / planted).symlink_to(tmp_path / "theirs")
    folder = cache_folder("kernels-x")
    assert temporary not in (folder, *folder.parents)
    assert not list((tmp_path / "theirs").iterdir())


def test_a_folder_of_ones_own_that_others_can_read_becomes_private(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o755)
    assert made_private(folder)
    assert mode(folder) == 0o700


def test_a_file_in_the_way_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    assert not made_private(tmp_path / "cache")
    assert not made_private(tmp_path / "cache" / "below")


def test_all_compiled_code_goes_there(tmp_path: Path) -> None:
    """Of a process that evaluates a pattern, none is left beside the sources."""
    program = (
        "import trendlake.cep_core.events.kernels.values as v, numpy as np; v.plain(np.ones(2));"
        "from numba.core.caching import FunctionCache; import numba;"
        "print(numba.config.CACHE_DIR); print(v.plain.stats.cache_path)"
    )
    env = {**os.environ, "TRENDLAKE_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    folder, used = done.stdout.split()
    assert Path(folder).parent == tmp_path / "trendlake"
    assert Path(used).is_relative_to(folder)
    assert list(Path(used).glob("*.nbi"))


PROGRAM = """
import trendlake.cep_core.events.kernels.values as v, numpy as np
print(v.plain(np.ones(2)))
print(v.plain.stats)
"""


def output_with_cache(folder: Path) -> str:
    """What a process prints that runs a kernel, with its cache below `folder`."""
    env = {**os.environ, "TRENDLAKE_CACHE": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_a_full_disk_costs_the_time_to_compile_only(tmp_path: Path) -> None:
    """No kernel can be written, and each runs; with room again they are kept."""
    with small_disk(tmp_path / "disk", 4000) as disk:
        assert Path(output_of_folders(disk)).is_relative_to(disk)
        with full(disk):
            assert output_with_cache(disk).startswith("True")
        assert not list(disk.rglob("*.nbc"))
        output_with_cache(disk)
        assert list(disk.rglob("*.nbc"))


def output_of_folders(disk: Path) -> str:
    """Makes the folders of the cache, and none of its files."""
    env = {**os.environ, "TRENDLAKE_CACHE": str(disk), "PYTHONPATH": str(ROOT)}
    program = "import numba, trendlake.cep_core.events.kernels.values; print(numba.config.CACHE_DIR)"
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.long
def test_half_a_file_is_compiled_anew(tmp_path: Path) -> None:
    """An entry that is cut off, and a list of entries that is empty."""
    output_with_cache(tmp_path)
    for pattern, size in (("*.nbc", 20), ("*.nbi", 0)):
        for file in tmp_path.rglob(pattern):
            file.write_bytes(file.read_bytes()[:size])
        assert output_with_cache(tmp_path).startswith("True")
