"""Options of the commands that compare: their example, their targets, their files."""

from collections.abc import Iterable

import click

from attentest.interfaces.cli.usage import Usage, refuse_unknown, usage
from attentest.interfaces.cli.written import FILE
from attentest.studies.comparison import EXAMPLES, BadExample, Example, example

given_input = click.option(
    "--input",
    "given",
    default="small",
    show_default=True,
    metavar="NAME|FILE",
    help=f"The example: {', '.join(EXAMPLES)}, or a file FILE.json with source and target tokens.",
)

given_json = click.option(
    "--json", "json_file", type=FILE, help="Write what is found to this file."
)


def asked_for(targets: Iterable[str], given: str) -> Example:
    """Return the example, and refuse names that are none before a process is started for them."""
    with usage():
        refuse_unknown(targets)
        try:
            return example(given)
        except BadExample as wrong:
            raise Usage(str(wrong)) from wrong
