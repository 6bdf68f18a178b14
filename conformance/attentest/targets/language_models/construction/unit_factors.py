"""Factors of paths, of embeddings and of logits that arguments say: a model is built with 1."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace

from attentest.targets.adapt.components import words_of
from attentest.targets.language_models.construction.building import Building
from attentest.targets.signatures import constructor_arguments

_FACTOR = re.compile(r"scale|scaling|mult|multiplier|alpha|beta|factor|lambda|gain|weight")
_OF_PATHS = re.compile(
    r"resid|residual|skip|branch|deepnorm|depth|embed|embedding|embeddings|emb|logit|logits|width|"
    r"output|lm|head|mup|layer|block|shortcut"
)
_OTHER = re.compile(r"rope|rotary|init|std|lora|loss|lr|dropout|drop|ffn|ff|mlp|decay|aux|z|kv")
"""Words of the names of factors, of what they multiply, and of those of something else."""

_UNIT = (
    "not compared: the factor {0} (a design that the specification does not have): the rest is "
    "judged with {0}=1.0, and its default is {1}"
)


def with_unit_factors(built: Building) -> Building | None:
    """Return `built` with 1 for each factor that an argument has another default of.

    None where there is no such argument.
    """
    expression, said = built.expression, []
    for maker, own, default in _factors(built):
        expression = expression.replace(f"{maker}(", f"{maker}({own}=1.0, ", 1)
        said.append(_UNIT.format(own, default))
    for own, value in re.findall(r"\b(\w+)=(\d*\.\d+(?:e-?\d+)?)\b", built.expression):
        if _is_factor(own) and float(value) != 1.0:
            expression = re.sub(rf"\b{own}={re.escape(value)}", f"{own}=1.0", expression)
            said.append(_UNIT.format(own, value))
    if not said:
        return None
    return replace(built, expression=expression, doubts=(*built.doubts, *said))


def _factors(built: Building) -> Iterator[tuple[str, str, float]]:
    """Yield the factors that classes called by the expression have another default of than 1."""
    for name in dict.fromkeys(re.findall(r"(\w+)\(", built.expression)):
        made = built.space.get(name)
        for own, one in constructor_arguments(made).items() if inspect.isclass(made) else ():
            is_new = not re.search(rf"\b{own}=", built.expression)
            if is_new and type(one.default) is float and one.default != 1.0 and _is_factor(own):
                yield name, own, one.default


def _is_factor(own: str) -> bool:
    """Say whether an argument is a factor of a path, of embeddings or of logits, by its words."""
    words = words_of(own)
    kinds = (_FACTOR, _OF_PATHS, _OTHER)
    factor, path, other = (any(one.fullmatch(word) for word in words) for one in kinds)
    return factor and path and not other
