"""Functions that make decoder-only models: those that return a module, and are given its sizes."""

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed, words_of
from attentest.targets.adapt.names import words
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.calling import is_causal
from attentest.targets.language_models.construction.building import NEEDED, Options, space_of
from attentest.targets.language_models.inference import called
from attentest.targets.language_models.probing import probe_of, probe_sizes
from attentest.targets.signatures import returned, sizes_in

NAMED = re.compile(
    r"(gpt\d*|llama\d*|causallm|(?<!masked)languagemodel|(?<!masked)(?<!m)lm(model)?|smollm\d*|"
    r"lmheadmodel|decoderonly(transformer|model|arch|architecture|network|lm)?)$"
)
"""Names that only decoder-only models have: a masked language model is an encoder."""

_WORK = frozenset(
    words(
        "bench benchmark convert eval evaluate export finetune fit generate load main plot profile "
        "run sample test train"
    )
)
"""First words of the names of functions that do more than to make a model."""

_NO_MODULE = (
    "{0} is no function that returns a torch.nn.Module, and a function is judged as language_model "
    "where it makes the model at sizes that are its arguments. A function of tokens and weights is "
    "judged as a class of your own, with the weights as its parameters and `def forward(self, "
    "tokens): return {0}(tokens, ..)`: name that with --as language_model."
)


def makes_language_models(thing: Any, reading: Reading, name: str) -> bool:
    """Say whether `thing` is a function that makes decoder-only models at sizes that it is given.

    Raises Unclear for one that the user says is a model, and makes none.
    """
    if not inspect.isfunction(thing) or reading.component not in ("", "language_model"):
        return False
    own = name or thing.__name__
    if reading.component:
        if not returns_module(thing):
            raise Unclear(_NO_MODULE.format(own))
        return True
    if not makes_modules(own, thing) or not _is_given_sizes(thing, reading, own):
        return False
    if NAMED.search(squashed(own)):
        return True  # what cannot be read, or is not causal, is asked about as that
    try:
        built, _, call = called(thing, own, reading)
    except Unclear:
        return False
    return is_causal(probe_of(built, probe_sizes(built)), call)


def makes_modules(name: str, thing: Callable[..., Any]) -> bool:
    """Say whether a function returns a module, and does nothing else, as far as its name says."""
    return _WORK.isdisjoint(words_of(name)[:1]) and returns_module(thing)


def returns_module(thing: Callable[..., Any]) -> bool:
    """Say whether the source of a function returns what a class of modules makes."""
    annotated = returned(thing)
    if inspect.isclass(annotated) and annotated is not inspect.Signature.empty:
        return issubclass(annotated, nn.Module)
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
    except (OSError, SyntaxError, TypeError, ValueError):
        return False
    held = {**vars(builtins), **thing.__globals__}
    made = dict(_assigned(tree))
    ends = [one.value for one in ast.walk(tree) if isinstance(one, ast.Return)]
    return bool(ends) and any(_is_made(made.get(_name(one), one), held) for one in ends)


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the variables of a function with the call that each is assigned first."""
    seen = set()
    for one in ast.walk(tree):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call):
            for own in (_name(target) for target in one.targets):
                if own and own not in seen:
                    seen.add(own)
                    yield own, one.value


def _name(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_made(node: ast.expr | None, held: Mapping[str, Any]) -> bool:
    """Say whether an expression calls a class of modules by its name, or by that in a module."""
    if not isinstance(node, ast.Call):
        return False
    *path, own = ast.unparse(node.func).split(".")
    found: Any = held.get(path[0] if path else own)
    for part in [*path[1:], own] if path else []:
        found = getattr(found, part, None)
    return inspect.isclass(found) and issubclass(found, nn.Module)


def _is_given_sizes(thing: Callable[..., Any], reading: Reading, name: str) -> bool:
    """Say whether names explain all required arguments of `thing`, and the sizes of a model."""
    options = Options(space_of(thing, name, reading), reading, thing)
    first = next(options.expressions(thing, name), "")
    return not options.unknown and sizes_in(first).issuperset(NEEDED)
