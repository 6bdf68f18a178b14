"""Models whose mode of training or evaluation cannot be switched."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import nn

from attentest.targets.adapt.reading import Unclear


def demand_modes(thing: Callable[..., Any], name: str) -> None:
    """Raise Unclear for a class whose method `train` needs more than a mode, as eval() gives it."""
    if not (inspect.isclass(thing) and issubclass(thing, nn.Module)):
        return
    try:
        inspect.signature(thing.train).bind(None, False)
    except TypeError:
        own = inspect.signature(thing.train)
        raise Unclear(
            f"{name} has a method train{own} in the place of that of torch.nn.Module, which "
            f"eval() calls with a mode: eval() raises an error, so dropout cannot be switched "
            f"off. Give the method another name, such as fit."
        ) from None
