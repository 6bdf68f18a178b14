"""Options of the commands that compare: their example, their targets, their files."""

from collections.abc import Iterable

import click

from attentest.interfaces.cli.usage import Usage, refuse_unknown, usage
from attentest.studies.comparison import EXAMPLES, BadExample, Example, example

given_input = click.option(
    "--input",
    "given",
    default="small",
    show_default=True,
    metavar="NAME|FILE",
    help=f"The example: {', '.join(EXAMPLES)}, or a file FILE.json with source and target tokens.",
)


def asked_for(targets: Iterable[str], given: str) -> Example:
    """Return the example, and refuse names that are none before a process is started for them."""
    with usage():
        refuse_unknown(targets)
        try:
            return example(given)
        except BadExample as wrong:
            raise Usage(str(wrong)) from wrong
