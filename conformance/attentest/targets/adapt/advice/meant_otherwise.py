"""Words and branches of attention that say that its numbers are meant to be other ones."""

import ast
import inspect
import re
import textwrap

from torch import nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.advice.scale_of_callers import (
    demand_scale_argument,
    demand_scale_of_caller,
)
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.names import words
from attentest.targets.adapt.probing import Probe, is_causal
from attentest.targets.adapt.reading import Attempt, Reading, Unclear
from attentest.targets.adapt.unspecified.scores import ATTENDING

_SCALED_BY_WIDTH = re.compile(r"\bmup\b|[μµ]p\b|maximal[ -]update", re.IGNORECASE)
"""Names of the parametrisation in which scores are divided by d_k and not by its root."""

_ANY_MASK = words("mask attnmask causalmask attentionbias")
"""Names of masks that may be those of later positions alone."""

_FUSED = "scaled_dot_product_attention"


def demand_meant(
    code: Code, probe: Probe, adapter: Adapter, reading: Reading, *, fits: bool
) -> None:
    """Raise Unclear where other code, words or branches say that other numbers are meant.

    `fits` says that its numbers are those of the formula.
    """
    demand_scale_of_caller(code, probe, adapter, reading)
    if not fits:
        demand_scale_argument(code, probe, adapter, reading)
    source = _source(code)
    named = _SCALED_BY_WIDTH.search(source)
    if code.component in ATTENDING and named and not fits and "score_scale" not in reading.choices:
        raise Unclear(
            f'{code.name} says "{named[0]}", in which scores are divided by d_k where the paper '
            f"divides by its root, and the specification has no such option: its numbers are not "
            f"the formula's. Judge it with the paper's scale, or with --anyway."
        )
    mask = adapter.arguments.roles.get("mask", "")
    if mask.replace("_", "") not in _ANY_MASK or adapter.causal or not code.is_module:
        return
    if _is_left_to_other_branch(source, mask) and is_causal(probe, adapter, joined=True):
        raise Unclear(
            f"{code.name} hides later positions by itself in the branch that runs, and reads "
            f"{mask} in another one alone: if {mask} hides more than later positions, this is a "
            f"mistake; if not, --give {mask}=None (in Python: given={{{mask!r}: None}}) judges it "
            f"without.",
            attempts=[Attempt(given={mask: None})],
        )


def _source(code: Code) -> str:
    thing = code.thing if inspect.isclass(code.thing) else type(code.thing)
    if not issubclass(thing, nn.Module):
        return ""
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        return ""


def _is_left_to_other_branch(source: str, mask: str) -> bool:
    """Say whether `mask` is read in the place of the fused kernel alone, which does not get it."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    calls = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef) and mask in [own.arg for own in one.args.args]
        if any(getattr(node, "attr", getattr(node, "id", "")) == _FUSED for node in ast.walk(one))
    ]
    if len(calls) != 1:
        return False
    other = [
        read
        for one in ast.walk(calls[0])
        if isinstance(one, ast.If) and _fused_without(one.body, mask)
        for read in _reads(one.orelse, mask)
    ]
    return bool(other) and len(other) == len(_reads(calls[0].body, mask))


def _fused_without(body: list[ast.stmt], mask: str) -> bool:
    nodes = [node for one in body for node in ast.walk(one)]
    return not _reads(body, mask) and any(getattr(one, "attr", "") == _FUSED for one in nodes)


def _reads(body: list[ast.stmt], mask: str) -> list[ast.Name]:
    nodes = [node for one in body for node in ast.walk(one)]
    return [
        one
        for one in nodes
        if isinstance(one, ast.Name) and one.id == mask and isinstance(one.ctx, ast.Load)
    ]
