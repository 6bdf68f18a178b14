"""Question about whole models whose inputs are sounds or images, and no tokens."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.reading import Uncovered
from attentest.targets.models.arguments import FEATURES, Arguments

_OF_FEATURES = (
    "{} takes {}, which is a sound or an image by its name and no token ids, and cannot be called "
    "with these ({}). Whole models of text alone are judged: its parts can be judged one by one. "
    "What is judged, and what is not: docs/what-is-judged.md"
)
_NO_TEXT = (
    "{} hands one of its inputs to a convolution, {}, and not to a table of words: it is none of "
    "tokens, as of sounds or images. Whole models of text alone are judged. Its parts can be "
    "judged one by one. What is judged, and what is not: docs/what-is-judged.md"
)


def demand_tokens(
    name: str, model: nn.Module, read: Arguments, failure: str, call: Callable[[], object]
) -> None:
    """Raise Uncovered where a model that cannot be called is one of sounds or images.

    Its source has the name of these, or a convolution gets the tokens of a `call`.
    """
    if path := _convolved(model, call):
        raise Uncovered(_NO_TEXT.format(name, path))
    if (own := read.tokens.get("source", "")) and squashed(own) in FEATURES:
        raise Uncovered(_OF_FEATURES.format(name, own, failure))


def _convolved(model: nn.Module, call: Callable[[], object]) -> str:
    """Return the first convolution of `model` that gets tokens in a call, "" for none."""
    found: list[str] = []

    def entered(path: str, _: nn.Module, inputs: tuple[object, ...]) -> None:
        if any(isinstance(one, Tensor) and not one.is_floating_point() for one in inputs):
            found.append(path)

    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    held = [(path, one) for path, one in model.named_modules() if isinstance(one, kinds)]
    hooks = [one.register_forward_pre_hook(partial(entered, path)) for path, one in held]
    if hooks:
        call()
    for hook in hooks:
        hook.remove()
    return found[0] if found else ""
