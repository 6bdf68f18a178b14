"""Backends in any language: programs that answer lines of JSON on their standard input.

A request and its answer are one JSON object and one line each; `schema.json` in this package
describes them. An entry point of three lines announces such a program::

    from attentest_spec.stdio import Program

    def backend() -> Program:
        return Program(["node", "program.mjs"])
"""

from attentest_spec.stdio.pipe import ProgramFailure
from attentest_spec.stdio.program import CAPABILITIES, Program, ProgramPart

__all__ = ["CAPABILITIES", "Program", "ProgramFailure", "ProgramPart"]
