"""Embeddings with positions added inside: what they compute without these is judged.

The classes need nothing else of the suite: reproductions and written adapters contain their source.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import component_guessed
from attentest.targets.adapt.encoders.stack import replaced
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Wrapper


class NoPositions(nn.Module):
    """Replaces a module of positions: returns its input, or zeros of `axes` axes."""

    def __init__(self, like: nn.Module, width: int, axes: int) -> None:
        super().__init__()
        self.shape = (*[1] * (axes - 1), width)
        self.like = (like,)  # in a tuple: it is no part of this one

    def forward(self, x: Any = None, *_: Any, **__: Any) -> Any:
        """Return what positions of zeros give for `x`."""
        return x if len(self.shape) < 2 else next(self.like[0].parameters()).new_zeros(self.shape)


class Unplaced(nn.Module):
    """The result of `embedding` with nothing added by its part at the path `positions`.

    That part gives its input back if `axes` is 0, and a table with that number of axes otherwise.
    """

    def __init__(self, embedding: nn.Module, width: int, *, positions: str, axes: int = 0) -> None:
        super().__init__()
        place, _, own = positions.rpartition(".")
        setattr(embedding.get_submodule(place), own, NoPositions(embedding, width, axes))
        self.embedding = embedding

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the embedding returns."""
        return self.embedding(*args, **named)


PLACED_SOURCE = "\n".join(
    [
        "from typing import Any",
        "",
        "from torch import nn",
        "",
        "",
        inspect.getsource(NoPositions),
        "",
        inspect.getsource(Unplaced),
    ]
)
"""The classes as code of their own, for a reproduction or a written adapter."""

_WITHOUT = (
    "assumed that the positions that {} adds are no part of the embedding: it is judged without "
    "them. If you meant the component alone, this is a mistake, and --strict reports it"
)


def without_positions(code: Code, probe: Probe, reading: Reading) -> Iterator[Code]:
    """Yield an embedding without the one part that adds positions to its rows.

    Nothing is yielded unless the part adds what it returns, and does nothing else.
    """
    module = probe.built
    if code.component != "embedding" or code.wrapper is not None or reading.strict:
        return
    if code.construction is None or not isinstance(module, nn.Module):
        return
    places = [path for path, one in module.named_modules() if path and has_positions(path, one)]
    outer = [one for one in places if not any(one.startswith(f"{up}.") for up in places)]
    if len(outer) != 1:
        return
    for axes in (0, 3, 2):
        options: dict[str, Any] = {"positions": outer[0]} | ({"axes": axes} if axes else {})
        sentence = _WITHOUT.format(outer[0])
        wrapper = Wrapper(Unplaced, PLACED_SOURCE, WIDTH, sentence, options)
        if _is_added(code, probe, wrapper, outer[0]):
            yield code.wrapped(wrapper)


def has_positions(path: str, module: nn.Module) -> bool:
    """Say whether a part has positions: by its class, or as a table with a row for each."""
    if isinstance(module, nn.Embedding):
        return module.num_embeddings in (SIZES.max_length, SIZES.max_length + 1)
    own = component_guessed(type(module).__name__)
    return own == "positional_encoding" or component_guessed(path) == "positional_encoding"


def _is_added(code: Code, probe: Probe, wrapper: Wrapper, path: str) -> bool:
    """Say whether the result is that without positions, and the positions."""
    tokens = torch.arange(1, 11).view(2, 5)
    seen: list[tuple[Any, Any]] = []

    def watch(call: Any, *args: Any, **named: Any) -> Any:
        output = call(*args, **named)
        seen.append((next(iter([*args, *named.values()]), None), output))
        return output

    axes = wrapper.options.get("axes", 0)
    try:
        with undisturbed():
            whole = code.build(SIZES).to(probe.dtype).eval()
            with replaced(whole.get_submodule(path), watch):
                both, _ = whole(tokens), whole(tokens.flip(1))
            rows = wrapper(whole, SIZES)(tokens)
    except Exception:  # code that a user wrote may raise anything
        return False
    made = [one for one in (both, rows, *(left for _, left in seen)) if isinstance(one, Tensor)]
    if len(seen) != 2 or len(made) != 4 or any(axes and left.ndim != axes for _, left in seen):
        return False
    if not axes and not all(isinstance(x, Tensor) and x.is_floating_point() for x, _ in seen):
        return False
    added, other = (left if axes else left - entered for entered, left in seen)
    same = added.shape == other.shape and torch.allclose(added, other, atol=1e-5)
    return same and both.shape == rows.shape and torch.allclose(both - rows, added + 0 * rows)
