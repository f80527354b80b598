"""Starts a command under the guard, so that it is gone when its owner is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_GUARD = Path(__file__).with_name("guard.py")


def spawn(
    command: Sequence[str],
    folder: Path,
    *,
    output: int | IO[bytes],
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start ``command``; it ends, and ``folder`` goes, when this process or the pipe ends.

    Args:
        command: program (a path) and arguments.
        folder: a folder for this command alone; it stays only when the command ends well.
        output: where standard output and error go, as for subprocess.
        environment: variables in place of this process's own.

    Returns:
        The guard's process. Closing its ``stdin`` ends everything; its exit status is the
        command's.
    """
    # A session of its own: Jupyter interrupts and kills a kernel's whole process group, and the
    # guard must live through that to clean up.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), str(folder), *command],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
