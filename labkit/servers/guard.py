"""Runs a command that must not outlive its owner: ``guard.py OWNER_PID FOLDER COMMAND...``.

A process of its own between the owner and the command. It ends the command's whole process
group and removes FOLDER when the owner closes this process's standard input, and when the owner
is gone in any way (kill -9 closes its end of the pipe; a forked child that still holds the pipe
is caught by the parent's number). When the command ends by itself, FOLDER goes only if it failed:
what it made when it ended well is the owner's. The exit status is the command's. Standard library
only, and started with ``-I -S``, because each server start waits for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys

LOOK_EVERY = 0.2  # seconds between two looks at the owner and the command


def _end_with_parent() -> None:
    """Ask Linux to kill this process when the guard itself is killed; elsewhere nothing does."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _spawn(command: list[str]) -> int:
    guard = os.getpid()
    child = os.fork()
    if child:
        # Both set it: an owner may end before the child runs, and the group must exist by then.
        with contextlib.suppress(PermissionError, ProcessLookupError):  # the child was faster
            os.setpgid(child, child)
        return child
    os.setpgid(0, 0)
    _end_with_parent()
    if os.getppid() != guard:  # the guard died before the request above was in force
        os._exit(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execv(command[0], command)
    except OSError as error:
        print(error, flush=True)
    os._exit(127)


def main(owner: int, folder: str, command: list[str]) -> int:
    """Wait for the first end of the three, clean up, and give the command's exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the owner's end is a reason to stop
    child = _spawn(command)
    ended = status = 0
    while not ended and os.getppid() == owner:
        closed, _, _ = select.select([0], [], [], LOOK_EVERY)
        ended, status = os.waitpid(child, os.WNOHANG)
        if closed:
            break
    # No such group: all of it has ended. No permission: what macOS says of an unreaped process.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        _, status = os.waitpid(child, 0)
    if not ended or status:
        shutil.rmtree(folder, ignore_errors=True)
    return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
