"""Documentation of code, and comments that say what an argument of a call means."""

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from typing import Any

_VALUE = re.compile(r"\b(true|false|[01]|ones?|zeros?)\b", re.IGNORECASE)
"""The values that the comment on a mask has to name."""


def words_on(call: Callable[..., Any], owner: Callable[..., Any] | None = None) -> str:
    """Return what documents a call and the class `owner` of it, with the comments on its masks.

    The documentation of a class is not that of the one which it inherits from.
    """
    own = inspect.cleandoc(owner.__doc__ or "") if owner else ""
    return "\n".join(filter(None, [own, inspect.getdoc(call) or "", *comments_on_masks(call)]))


def comments_on_masks(call: Callable[..., Any]) -> Iterator[str]:
    """Yield what comments say of the masks that `call` takes: "mask: True = a real token".

    They are where the argument is declared, or where it is asked whether it is given, or begin
    with its name before the first statement: what follows further code may be about the contrary
    of the mask. Those on a mask of that name in the script around it are read, too.
    """
    try:
        source = inspect.getsource(call)
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        masks = [one for one in inspect.signature(call).parameters if "mask" in one]
    except (OSError, TypeError, ValueError, SyntaxError, tokenize.TokenError):
        return
    first = _first_statement(tokens)
    for token in tokens:
        if token.type != tokenize.COMMENT or not _VALUE.search(token.string):
            continue
        code = token.line[: token.start[1]].strip()
        said = token.string.lstrip("# ")
        yield from (f"{own}: {said}" for own in masks if _introduces(code, own))
        if not code and token.start < first:
            yield from (said for own in masks if re.match(rf"{re.escape(own)}\b\W", said))
    for own in masks:
        yield from (f"{own}: {said}" for said in _at_assignments(call, own))


def _at_assignments(call: Callable[..., Any], own: str) -> Iterator[str]:
    """Yield what comments say of a mask `own` that the script around `call` makes to call it with.

    They are in the line of the assignment, or alone in the one above it.
    """
    home = inspect.getmodule(call)
    try:
        source = inspect.getsource(home) if home is not None else ""
        body = ast.parse(source).body
    except (OSError, TypeError, SyntaxError):
        return
    lines = source.splitlines()
    inside = [one for node in body if isinstance(node, ast.If) for one in node.body]
    for node in [*body, *inside]:
        if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != own:
            continue
        above = lines[node.lineno - 2].strip() if node.lineno > 1 else ""
        behind = lines[node.lineno - 1].partition("#")[2]
        held = (behind, above.lstrip("# ") if above.startswith("#") else "")
        yield from (one.strip() for one in held if _VALUE.search(one))


def _first_statement(tokens: list[tokenize.TokenInfo]) -> tuple[int, int]:
    """Return where the first statement of a function begins, behind its documentation."""
    lines = iter(tokens)
    next((one for one in lines if one.type == tokenize.NEWLINE), None)  # the end of its signature
    return next((one.start for one in lines if one.type not in _NO_CODE), (0, 0))


_NO_CODE = (
    *(tokenize.COMMENT, tokenize.STRING, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT),
    tokenize.DEDENT,
)


def _introduces(code: str, own: str) -> bool:
    """Say whether a line of code declares the argument `own`, or asks whether it is given."""
    asked = rf"if {re.escape(own)} is not None:"
    declared = rf"(def \w+\(.*\b)?{re.escape(own)}(\s*:[^=]*)?(\s*=.*)?(,|\).*:)?"
    alone = re.fullmatch(declared, code) and (code.startswith("def ") or code.endswith(","))
    return bool(re.fullmatch(asked, code) or alone)
