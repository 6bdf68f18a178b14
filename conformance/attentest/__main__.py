"""`python -m attentest` is the command."""

from attentest.cli import main

main(prog_name="attentest")
