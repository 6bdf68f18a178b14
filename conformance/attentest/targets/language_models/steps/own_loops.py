"""Loops of a file that continue a text from a cache: they show how its steps are called."""

import ast
import re
from collections.abc import Iterator

from attentest.targets.language_models.caching import Cached
from attentest.targets.neighbours import bodies_naming

_CALLED = ("self", "self.forward", "model", "self.model", "net")
"""Names of the model in such a loop."""

_LAST_TOKEN = re.compile(r"\[:, -1:\]|\[:, \[-1\]\]|next|new_tok")
"""Code that gives a step the last token alone, or the one that was chosen before."""


def is_continued_so(thing: type, cached: Cached, tokens: str) -> bool:
    """Say whether a loop around the class `thing` continues texts as `cached` says.

    It gives the cache and the switch that asks for it, besides the `tokens`, and nothing else; the
    last token alone; and the cache that the call before has returned at the same place.
    """
    if cached.counted or cached.places or cached.mask:
        return False
    if cached.in_place:
        return _is_changed_so(thing, cached, tokens)
    if type(cached.part) is not int:
        return False
    allowed = {cached.argument, cached.flag, tokens}
    for loop in _functions(thing):
        names = _assigned(loop)
        for target, call in _results(loop):
            given = {one.arg: one.value for one in call.keywords}
            kept = given.get(cached.argument)
            plain = len(call.args) <= 1 and given.keys() <= allowed and isinstance(kept, ast.Name)
            if plain and cached.part < len(target.elts) and isinstance(kept, ast.Name):
                new = getattr(target.elts[cached.part], "id", "")
                again = new and (new == kept.id or (kept.id, new) in names)
                if again and _is_last(given.get(tokens, *call.args[:1]), names):
                    return True
    return False


def _is_changed_so(thing: type, cached: Cached, tokens: str) -> bool:
    """Say whether a loop gives its calls one cache of the class that `cached` begins with."""
    made = re.search(r"\b(\w+)\(", cached.start)
    allowed = {cached.argument, cached.flag, tokens}
    for loop in _functions(thing) if made else ():
        names = _assigned(loop)
        for call in [one for one in ast.walk(loop) if isinstance(one, ast.Call)]:
            given = {one.arg: one.value for one in call.keywords}
            kept = getattr(given.get(cached.argument), "id", "")
            plain = ast.unparse(call.func) in _CALLED and given.keys() <= allowed
            begun = any(made and f"{made[1]}(" in code for name, code in names if name == kept)
            if plain and begun and _is_last(given.get(tokens, *call.args[:1]), names):
                return True
    return False


def _functions(thing: type) -> Iterator[ast.FunctionDef]:
    for body in bodies_naming(thing):
        for node in ast.walk(ast.Module(body, [])):
            if isinstance(node, ast.FunctionDef):
                yield node


def _results(loop: ast.AST) -> Iterator[tuple[ast.Tuple, ast.Call]]:
    """Yield the tuples of names that are assigned a call of a model, with that call."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target, called = node.targets[0], ast.unparse(node.value.func)
            if isinstance(target, ast.Tuple) and called in _CALLED:
                yield target, node.value


def _is_last(given: ast.expr | None, names: set[tuple[str, str]]) -> bool:
    """Say whether what is `given` to a step is the last token, by what `names` are assigned.

    A text to which the next token is joined is all of it.
    """
    own = "" if given is None else ast.unparse(given)
    held = [own, *(code for name, code in names if name == own)]
    return any(_LAST_TOKEN.search(one) and not _JOINED.search(one) for one in held)


_JOINED = re.compile(r"\b(cat|concat|hstack|append)\(")


def _assigned(loop: ast.AST) -> set[tuple[str, str]]:
    """Return the names that are assigned something, each with the code of that."""
    return {
        (getattr(target, "id", ""), ast.unparse(node.value))
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
