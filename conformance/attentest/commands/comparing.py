"""What the commands that compare have in common: their example, their targets, their files."""

from collections.abc import Iterable
from pathlib import Path

import click

from attentest.commands.usage import Usage, usage
from attentest.comparison import EXAMPLES, BadExample, Example, example
from attentest.targets import is_name
from attentest_spec import UnknownName, registry

given_input = click.option(
    "--input",
    "given",
    default="small",
    show_default=True,
    metavar="NAME|FILE",
    help=f"The example: {', '.join(EXAMPLES)}, or a file FILE.json with source and target tokens.",
)

given_limit = click.option(
    "--timeout", default=120.0, show_default=True, help="Seconds a backend may take at a time."
)

FILE = click.Path(dir_okay=False, path_type=Path)

given_json = click.option(
    "--json", "json_file", type=FILE, help="Write what is found to this file."
)


def asked_for(targets: Iterable[str], given: str) -> Example:
    """Return the example, and refuse names that are none before a process is started for them."""
    with usage():
        known = registry.names()
        for target in targets:
            if is_name(target) and target not in known:
                raise UnknownName("backend", target, known)
        try:
            return example(given)
        except BadExample as wrong:
            raise Usage(str(wrong)) from wrong
