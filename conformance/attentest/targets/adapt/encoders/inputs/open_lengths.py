"""Lengths of texts without padding: the layers of a class must hide nothing for them."""

import inspect

import torch

from attentest.targets.adapt.code import Inner
from attentest.targets.adapt.encoders.wrapping import BATCH, LENGTH, Wrapping
from attentest.targets.adapt.masks import is_length
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Contrary

_NEAR = 1e-6
_HIDING = (
    "By its name the {0} of {1} says how many tokens of each text are no padding. Where that is "
    "all of them, a row of the last layer does not depend on every token: the mask made of {0} "
    "hides tokens. That may be a mistake, as a mask that is inverted is; its layers alone are "
    "judged by the name of their class."
)


def demand_open(wrapping: Wrapping, inner: Inner, signature: inspect.Signature) -> None:
    """Raise Contrary where lengths of all positions hide some of them from the layers."""
    lengths = [own for own in signature.parameters if is_length(own)]
    if len(lengths) != 1:
        return
    kind = next(wrapping.module.parameters()).dtype
    source = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, LENGTH, wrapping.sizes.d_model, generator=source).to(kind)
    given = {lengths[0]: torch.full((BATCH,), LENGTH)}
    try:
        with undisturbed():
            stack = inner(wrapping.whole, wrapping.sizes).eval()
            before = stack(x, **given)
            rows = []
            for place in (0, LENGTH - 1):
                moved = x.clone()
                moved[:, place] += torch.randn(x.shape[-1], generator=source).to(kind)
                rows.append((stack(moved, **given) - before).abs().amax(-1).nan_to_num(0.0))
    except Exception:  # code that a user wrote may raise anything
        return
    if before.shape == x.shape and not all(bool((one > _NEAR).all()) for one in rows):
        raise Contrary(_HIDING.format(lengths[0], wrapping.name))
