"""The masks of a whole model by its documentation and comments, against what numbers show."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

from torch import nn

from attentest.targets.adapt.makers.contrary import demand_meaning
from attentest.targets.adapt.makers.default_masks import demand_default
from attentest.targets.adapt.reading import Reading
from attentest.targets.comments import comments_on_masks
from attentest.targets.models.inferring import Inferred


def demand_meanings(
    thing: Callable[..., Any], name: str, inferred: Inferred, reading: Reading
) -> None:
    """Raise Contrary where the masks that the file of `thing` makes mean the contrary of its own.

    Each mask is what its numbers show; one that code makes by itself is right or wrong by these.
    """
    home, words = sys.modules.get(thing.__module__), documentation(thing)
    for own, form in inferred.call.conventions.masks.items():
        if not reading.mask:
            demand_default(name, own, form.meaning, thing)
            demand_meaning(name, own, form.meaning, words, home)


def documentation(thing: Callable[..., Any]) -> str:
    """Return the documentation of a class or function and its call, and comments on masks."""
    call: Any = getattr(thing, "forward", None)
    parts = [thing, call, getattr(thing, "__init__", None)]
    comments = comments_on_masks(call) if inspect.isclass(thing) else ()
    own = (inspect.getdoc(one) for one in parts if one is not nn.Module)
    return "\n".join(filter(None, (*own, *comments)))
