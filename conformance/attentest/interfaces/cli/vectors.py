"""`attentest vectors`: test vectors for implementations in any language."""

from pathlib import Path

import click

from attentest.interfaces.cli import options
from attentest.interfaces.cli.pairs import choice
from attentest.interfaces.cli.usage import Usage, usage
from attentest.studies import vectors


@click.command("vectors")
@click.argument("out", type=click.Path(path_type=Path))
@options.component
@click.option(
    "--choice",
    "choices",
    multiple=True,
    metavar="NAME=OPTION",
    help="Declare a design choice of all cases (default: the paper's option).",
)
@click.option(
    "--file-format",
    type=click.Choice(sorted(vectors.FORMATS)),
    default="safetensors",
    show_default=True,
    help="Format of the files with the numbers.",
)
@options.seed("all drawn numbers")
@click.option(
    "--count",
    type=options.FROM_ONE,
    default=1,
    show_default=True,
    help="Draws of the numbers of every case.",
)
def vectors_command(
    out: Path,
    components: tuple[str, ...],
    choices: tuple[str, ...],
    file_format: str,
    seed: int,
    count: int,
) -> None:
    """Write the new folder OUT: inputs, parameters, expected outputs and tolerances.

    Every component is there with inputs that hurt, in float64 and float32, and under every option
    of every choice that it shows. An index in JSON says what is what; see the how-to on vectors.
    """
    with usage():
        try:
            written = vectors.write(
                out,
                components=components,
                choices=dict(map(choice, choices)),
                file_format=file_format,
                seed=seed,
                count=count,
            )
        except ValueError as wrong:
            raise Usage(str(wrong)) from wrong
    for component, number in written.cases.items():
        click.echo(f"{component}: {number}")
    total = sum(written.cases.values())
    click.echo(f"{total} cases were written to {out}, {written.size / 1e6:.1f} MB in all.")
