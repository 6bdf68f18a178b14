"""A function of attention that scales no score, where what calls it scales queries or keys."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from torch import Tensor

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import TEMPERATURE, words
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.signatures import constructor_arguments

SCALES = words("scale scaling scalefactor scalingfactor softmaxscale qkscale temperature")
"""Names of the number that scores are multiplied or, for the last one, divided by."""

_CLOSE = 1e-9
"""The difference up to which outputs are those of plain products."""


def demand_scale_of_caller(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> None:
    """Raise Unclear where the caller may scale what a function of attention does not.

    It takes the softmax of the plain products then, and a class or function of its file that names
    it computes with a scale.
    """
    if code.component != "attention" or "score_scale" in reading.choices:
        return
    if not inspect.isfunction(code.thing) or not _is_plain(probe, adapter):
        return
    if line := _scale_of_callers(code.thing):
        raise Unclear(
            f"{code.name} divides no score by the root of the width of a key, and other code of "
            f"its file that names it computes with a scale: {line}. If queries or keys are scaled "
            f"there, add --choice score_scale=1.0 (in Python: choices={{'score_scale': 1.0}}), or "
            f"name that code; if they are not, --choice score_scale=inverse-sqrt-e reports it."
        )


def demand_scale_argument(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> None:
    """Raise Unclear where an argument with a number by default is the scale of the scores.

    Its caller says another one then, or norms queries and keys, as attention by cosines does. With
    no number by default, scores are scaled by what the caller gives alone.
    """
    if code.component != "attention" or "score_scale" in reading.choices:
        return
    left = [own for own, one in _arguments(code).items() if squashed(own) in SCALES and _off(one)]
    if any(own not in reading.given for own in left) and _is_plain(probe, adapter):
        raise Unclear(
            f"{code.name} scales no score where {left[0]} is not given, as by default. If its "
            f"caller gives 1/sqrt(d_k) there, add --choice score_scale=1.0 (in Python: "
            f"choices={{'score_scale': 1.0}}), which judges the rest; if no caller does, --choice "
            f"score_scale=inverse-sqrt-e reports it."
        )
    for own, value in _scale_arguments(code).items():
        factor = 1 / value if squashed(own) in TEMPERATURE else value
        if own not in reading.given and _is_plain(probe, adapter, factor):
            raise Unclear(
                f"{code.name} multiplies its scores by {factor:g}, as {own} is {value:g} by "
                f"default, and not by 1/sqrt(d_k). If its caller gives another {own}, or norms "
                f"queries and keys, add --choice score_scale={factor} (in Python: "
                f"choices={{'score_scale': {factor}}}); if not, --choice "
                f"score_scale=inverse-sqrt-e reports it."
            )


def _scale_arguments(code: Code) -> dict[str, float]:
    """Return the arguments called a scale that are numbers by default, with these."""
    return {
        own: float(one.default)
        for own, one in _arguments(code).items()
        if squashed(own) in SCALES and type(one.default) in (int, float) and one.default
    }


def _arguments(code: Code) -> dict[str, inspect.Parameter]:
    """Return the arguments of a call and of the constructor."""
    made = dict(code.signature.parameters)
    if code.construction is not None:
        made |= constructor_arguments(code.construction.make)
    return made


def _off(one: inspect.Parameter) -> bool:
    """Say whether an argument is nothing by default."""
    return one.default is None or one.default is False


def _is_plain(probe: Probe, adapter: Adapter, factor: float = 1.0) -> bool:
    """Say whether the output is that of scores which are the products, times `factor`."""
    given = probe.given(adapter)
    query, key, value = (given.get(one) for one in ("query", "key", "value"))
    output = probe.called(adapter, given)
    tensors = [one for one in (query, key, value, output) if isinstance(one, Tensor)]
    if len(tensors) < 4 or tensors[0].shape[-1] < 2:
        return False
    query, key, value, output = tensors
    expected = (factor * query @ key.mT).softmax(-1) @ value
    same = expected.shape == output.shape
    return same and bool(((output - expected).abs() <= _CLOSE).all())


def _scale_of_callers(function: Callable[..., Any]) -> str:
    """Return the line with a scale in what names `function` in its file, "" for none."""
    home = sys.modules.get(function.__module__)
    try:
        source = textwrap.dedent(inspect.getsource(home or function))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError):
        return ""
    own = function.__name__
    for scope in tree.body:
        if not isinstance(scope, ast.ClassDef | ast.FunctionDef) or scope.name == own:
            continue
        if not any(isinstance(one, ast.Name) and one.id == own for one in ast.walk(scope)):
            continue
        for node in ast.walk(scope):
            if isinstance(node, ast.BinOp) and _scales(node):
                return f"line {node.lineno}, `{ast.unparse(node)}`"
    return ""


def _scales(node: ast.BinOp) -> bool:
    """Say whether a product or a quotient has a factor called a scale, or a root."""
    if not isinstance(node.op, ast.Mult | ast.Div):
        return False
    for one in ast.walk(node):
        name = getattr(one, "id", getattr(one, "attr", ""))
        root = isinstance(one, ast.BinOp) and isinstance(one.op, ast.Pow)
        if root or "scale" in name.lower() or "sqrt" in name:
            return True
    return False
