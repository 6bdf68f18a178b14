"""`attentest list` and `attentest explain`: what the spec holds."""

from collections.abc import Callable, Iterator

import click

from attentest.interfaces.cli.usage import usage
from attentest.views.describe import described, listed

KINDS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = listed()


@click.command("list")
@click.argument("kind", type=click.Choice(sorted(KINDS)))
def list_command(kind: str) -> None:
    """Print one item of KIND a line, its name first."""
    rows = list(KINDS[kind]())
    width = max((len(name) for name, _ in rows), default=0)
    for name, told in rows:
        click.echo(f"{name:<{width}}  {told}".rstrip())


@click.command("explain")
@click.argument("name")
def explain_command(name: str) -> None:
    """Explain a clause, a choice, a component, a backend or a fault by its NAME."""
    with usage():
        click.echo(described(name))
