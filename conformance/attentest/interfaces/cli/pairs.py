"""Words of the form NAME=VALUE, as options of commands take them."""

import ast
from typing import Any

from attentest.interfaces.cli.usage import Usage
from attentest_spec import CHOICES


def pair(text: str, option: str, form: str) -> tuple[str, str]:
    """Return the name and the value in `text`; Usage, with the `form`, for anything else."""
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise Usage(f"{option} {text} is not of the form {form}.")
    return name, value


def choice(text: str) -> tuple[str, Any]:
    """Return the name and the value of a `--choice`; a number where the choice takes one."""
    name, word = pair(text, "--choice", "NAME=OPTION")
    value = literal(word)
    return name, value if name in CHOICES and isinstance(value, int | float) else word


def literal(text: str) -> Any:
    """Return the Python literal `text`, or the text itself where it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
