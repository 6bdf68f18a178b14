"""`attentest report`: one page out of what other commands wrote, and what changed between runs."""

import sys
from pathlib import Path

import click
from rich.console import Console

from attentest.interfaces.cli import options
from attentest.interfaces.cli.reporting import page_file, reporting
from attentest.interfaces.cli.usage import Usage, late
from attentest.interfaces.cli.written import FILE, distinct
from attentest.results import expected_failures, files
from attentest.views import html
from attentest.views.changes import show
from attentest.views.html.material import Material
from attentest_spec import registry


@click.command("report")
@click.argument("paths", nargs=-1, required=True, type=FILE, metavar="FILE ..")
@options.html_file
@options.json_file
@click.option(
    "--side-by-side", is_flag=True, help="Two runs are columns of one matrix, not OLD and NEW."
)
@click.option(
    "--deviations",
    "expected_file",
    type=FILE,
    help="A file with expected failures, which are marked.",
)
def report_command(
    paths: tuple[Path, ...],
    html_file: Path | None,
    json_file: Path | None,
    side_by_side: bool,
    expected_file: Path | None,
) -> None:
    """Make one page of streams (run --json) and results (compare, cost and learn --json).

    Two streams are an OLD and a NEW run: what changed from one to the other is printed, newly
    failing clauses first, and shown in the page. No backend is asked or loaded.

    Exit code 0: done; 1: a verdict that conformed in OLD does not in NEW, which asked for it;
    2: usage, or a file that is no result, was cut off or is of another version.
    """
    with reporting():
        found = html.read(*paths, side_by_side=side_by_side)
        moved = found.changes
        if moved is None and html_file is None:
            raise Usage("Say where the page is to go (--html FILE), or give two runs, OLD and NEW.")
        if moved is None and json_file is not None:
            raise Usage("Nothing is compared, so there is nothing for --json. Give two runs.")
        distinct(html=html_file, json=json_file)
        text = html.page(_declared(found, expected_file)) if html_file else ""
        with late(), page_file(html_file) as file:
            if file:
                file.write(text)
        if moved:
            with late():
                files.write(json_file, "changes", moved.as_dict())
    if moved:
        show(Console(), moved)
        sys.exit(int(bool(moved.regressions)))


def _declared(found: Material, path: Path | None) -> Material:
    """Return `found` with the expected failures, where a file is named."""
    if path is None:
        return found
    names = {name for run in found.runs for name in run.targets}
    try:
        return found.declaring(expected_failures.read(path, {*names, *registry.names()}))
    except expected_failures.UnusableFile as wrong:
        raise Usage(str(wrong)) from wrong
