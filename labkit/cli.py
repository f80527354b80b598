"""The command line: each command is a call into a wing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from labkit.errors import LabError

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Group(click.Group):
    """Turns the errors that a user can mend into one line and a status."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LabError as error:
            click.echo(f"labkit: {error}", err=True)
            ctx.exit(1)


@click.group(cls=_Group, context_settings=_CONTEXT)
def main() -> None:
    """Lessons on Redis sorted sets: run them, test them, render them.

    \b
    Example: labkit report 01_model --server valkey
    """


def _end(well: bool) -> None:
    sys.exit(0 if well else 1)


def _installed_servers(server: str = "redis") -> None:
    """Fetch missing embedded builds here, with progress, and not inside the first kernel."""
    from labkit.servers import binaries
    from labkit.servers.find import find

    for source in (find(server), find("valkey")):  # what a lesson runs on and is compared with
        if source.kind == "embedded":
            binaries.ensure(source.role)


@main.command()
def doctor() -> None:
    """Tell what would be used, what is wrong, and the mend.

    \b
    Example: labkit doctor
    """
    from labkit.servers.doctor import examine

    lines, well = examine()
    click.echo("\n".join(lines))
    _end(well)


@main.command(context_settings={**_CONTEXT, "ignore_unknown_options": True})
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def lab(args: Sequence[str]) -> None:
    """Open JupyterLab in notebooks/; ARGS go to it.

    \b
    Example: labkit lab --no-browser
    """
    from labkit.lessons import NOTEBOOKS

    _installed_servers()
    sys.exit(subprocess.call([sys.executable, "-m", "jupyterlab", *args], cwd=NOTEBOOKS))


@main.command()
@click.argument("lessons", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the pages [reports/].")
@click.option("--server", default="redis", show_default=True, help="redis, valkey or a URL.")
@click.option(
    "-p", "--parameter", nargs=2, multiple=True, metavar="NAME VALUE", help="Set it in the lessons."
)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Side by side.")
def report(lessons: Sequence[str], parameter: Sequence[tuple[str, str]], **options: Any) -> None:
    """Run LESSONS (all of them by default) and render them as pages.

    \b
    Example: labkit report model -p sizes "[1000, 10000, 100000]"
    """
    from labkit.lessons import report as pages

    _installed_servers(options["server"])
    _end(pages.run(lessons, parameters=dict(parameter), **options))


@main.command(context_settings={**_CONTEXT, "ignore_unknown_options": True})
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def test(args: Sequence[str]) -> None:
    """Run the unit tests and strict nbval over every lesson; ARGS go to pytest.

    \b
    Example: labkit test -k paging
    """
    from labkit.lessons.regression import pytest_command

    _installed_servers()
    sys.exit(subprocess.call(pytest_command(args)))


@main.command()
@click.argument("lessons", nargs=-1)
def refresh(lessons: Sequence[str]) -> None:
    """Run LESSONS in place and store the outputs that nbval compares.

    \b
    Example: labkit refresh 03_paging_drift
    """
    from labkit.lessons.regression import refresh_lessons

    _installed_servers()
    _end(refresh_lessons(lessons))


@main.command()
def claims() -> None:
    """List the ledger; fails where a claim has no cell or more than one.

    \b
    Example: labkit claims
    """
    from labkit.lessons import claims as ledger

    click.echo(ledger.summary(ledger.ledger()))
    problems = ledger.check()
    click.echo("\n".join(problems), err=True, nl=bool(problems))
    _end(not problems)


@main.group(context_settings=_CONTEXT)
def servers() -> None:
    """The embedded servers: install, list, stop.

    \b
    Example: labkit servers list
    """


@servers.command()
@click.option("--again", is_flag=True, help="Fetch them even when they are there.")
def install(again: bool) -> None:
    """Fetch the embedded builds into the user's cache.

    \b
    Example: labkit servers install
    """
    from labkit.servers import binaries
    from labkit.servers.find import ROLES

    for role in ROLES:
        click.echo(f"{role} {binaries.BUILDS[role].version}: {binaries.ensure(role, again=again)}")


@servers.command("list")
def list_() -> None:
    """List the embedded servers of this user that run now.

    \b
    Example: labkit servers list
    """
    from labkit.servers import embedded

    rows = embedded.running()
    for role, owner, folder in rows:
        click.echo(f"{role:7} owner {owner}  {folder}")
    click.echo(f"Embedded servers that run: {len(rows)}.")


@servers.command()
def stop() -> None:
    """End every embedded server of this user, also those of open notebooks.

    \b
    Example: labkit servers stop
    """
    from labkit.servers import embedded

    rows = embedded.running()
    for _, _, folder in rows:
        embedded.stop_at(folder)
    click.echo(f"Embedded servers ended: {len(rows)}. Folders cleared: {embedded.sweep()}.")


@main.group(context_settings=_CONTEXT, invoke_without_command=True)
@click.pass_context
def data(ctx: click.Context) -> None:
    """Write the generated data sets again; `labkit data check` only compares.

    \b
    Example: labkit data check
    """
    if ctx.invoked_subcommand is None:
        from labkit.lessons import DATA
        from labkit.lessons.data import regenerate

        for path in regenerate(DATA):
            click.echo(f"written: data/{path.name}")


@data.command()
def check() -> None:
    """Fail where data/ differs from what its seeds give.

    \b
    Example: labkit data check
    """
    from labkit.lessons.data import check as compare

    differences = compare()
    click.echo("\n".join(differences) or "data/ is what its seeds give, byte for byte.")
    _end(not differences)


@main.command()
@click.option("--members", default=1_000_000, show_default=True, help="Size of the loaded set.")
def bench(members: int) -> None:
    """Print the speed table of the README: each row a ratio against its peer in this run.

    \b
    Example: labkit bench --members 100000
    """
    from labkit.bench import table

    _installed_servers()
    click.echo(table(members))
