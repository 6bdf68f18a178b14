"""Reasons why what an expression builds cannot be the decoder-only model that is meant."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from attentest.results.text import summary
from attentest.targets.adapt.encoders.shared_layers import ONE_LAYER, holds_one_layer
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Attempt, Unclear
from attentest.targets.language_models.construction.rounded_tables import NO_TABLE
from attentest.targets.language_models.construction.settings import NO_INNER
from attentest_spec import Sizes


def failure_at(
    build: Callable[[Sizes], Any], known: Collection[str], sizes: Sizes, needed: Sequence[str]
) -> str:
    """Return why what `build` makes at `sizes` cannot be what is meant, "" where it can.

    The sizes that are `known` are those that it is built with, and some are `needed`.
    """
    try:
        with undisturbed():
            module = build(sizes)
            deeper = build(sizes.but(layers=3))
    except Exception as failure:  # code that a user wrote may raise anything
        return summary(failure, 160)
    if not isinstance(module, nn.Module):
        return f"it makes a {type(module).__name__}, and no torch.nn.Module"
    held = [one for one in module.parameters() if not is_lazy(one)]  # as of `nn.LazyLinear`
    shapes = [set(one.shape) for one in held if one.dim() > 1]
    if {sizes.target_vocabulary, sizes.d_model} not in shapes:
        return f"{NO_TABLE} {sizes.target_vocabulary} tokens by {sizes.d_model}"
    missing = [one for one in needed if one not in known]
    if missing:
        one_head = ", as in a model of one head, whose parts can be judged" * ("heads" in missing)
        return f"nothing in it is {' and '.join(missing)}{one_head}"
    flat = len(list(deeper.parameters())) <= len(list(module.parameters()))
    if flat and "layers" in needed:
        shared = holds_one_layer(deeper, layers=3)
        return "a third layer adds no parameters" + f": {ONE_LAYER}" * shared
    wide = [one for one in shapes if one & {sizes.d_ff, 2 * sizes.d_ff}]
    packed = any(one.dim() > 2 for one in held)  # as those of all experts are
    if "d_ff" in known and len(wide) < 2 and not packed:  # one may be a table of positions
        return NO_INNER
    return ""


def question_of(name: str, tried: str, sizes: Sequence[str], unknown: Sequence[str]) -> Unclear:
    """Return the question about a model that no expression builds; `tried` are words on them.

    `sizes` are the names of those that an argument may be, and nothing says what `unknown` are.
    """
    return Unclear(
        f"{name} could not be built as a decoder-only model.{tried} Say what an argument is with "
        f"--argument SIZE=NAME ({', '.join(sizes)}), or fix one with --give NAME=VALUE (in Python: "
        f"arguments={{SIZE: NAME}}, given={{NAME: VALUE}}).",
        attempts=[Attempt(given={one: -1}) for one in unknown if "pad" in one.lower()],
        built=True,
    )
