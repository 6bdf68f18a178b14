"""`python -m attentest` is the command."""

from attentest.interfaces.cli.main import main

main(prog_name="attentest")
