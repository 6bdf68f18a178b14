"""Instances of whole models: one is judged as its class if that, built anew, computes the same."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import SIZES
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Unclear
from attentest.targets.deep_copies import copy_of
from attentest.targets.models.inferring import Inferred
from attentest.targets.models.trials import Building
from attentest_spec import Sizes, Table
from attentest_spec.mapping import locate


def stands_for_class(thing: nn.Module, built: Building, inferred: Inferred, table: Table) -> None:
    """Raise Unclear where the class, built at the sizes of `thing`, computes something else."""
    name = type(thing).__name__
    with undisturbed():
        for sizes in _sizes(thing, built, table):
            if _agrees(thing, built, inferred, sizes):
                return
    raise Unclear(
        f"The {name} given computes something else than its class built with the same sizes "
        f"({built.expression}): it was built with other arguments. Give the class, and with "
        f"given={{NAME: VALUE}} the arguments that make the difference."
    )


def _sizes(thing: nn.Module, built: Building, table: Table) -> Iterator[Sizes]:
    """Yield the sizes that `thing` may have; no shape shows the number of heads."""
    own = dict(thing.named_parameters(remove_duplicate=False))

    def shape(name: str) -> tuple[int, ...]:
        place = locate(name, table)
        return tuple(own[place.name].shape) if place.name in own else ()

    try:
        vocabularies = [shape(f"{side}_embedding.weight") for side in ("source", "target")]
        width = min(vocabularies[0])
        inner = max(shape("encoder.layers.0.feed_forward.inner.weight"))
    except (KeyError, ValueError):
        return
    layers = 1
    while _has(f"encoder.layers.{layers}.feed_forward.inner.weight", table, own):
        layers += 1
    known = Sizes(
        d_model=width,
        d_ff=inner,
        layers=layers,
        source_vocabulary=max(vocabularies[0]),
        target_vocabulary=max(vocabularies[1]),
        max_length=_length(thing, built),
    )
    said = {
        value
        for module in thing.modules()
        for attribute, value in vars(module).items()
        if squashed(attribute) in SIZES["heads"] and type(value) is int
    }
    every = [n for n in range(1, width + 1) if width % n == 0]
    for heads in sorted(every, key=lambda n: n not in said):
        yield known.but(heads=heads)


def _has(name: str, table: Table, own: dict[str, nn.Parameter]) -> bool:
    return locate(name, table).name in own


def _length(thing: nn.Module, built: Building) -> int:
    """Return the length of the tables of positions in `thing`."""
    same = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
    state = thing.state_dict()
    for name, one in built(same).state_dict().items():
        for axis, size in enumerate(one.shape):
            if size == same.max_length and name in state:
                return int(state[name].shape[axis])
    return same.max_length


def _agrees(thing: nn.Module, built: Building, inferred: Inferred, sizes: Sizes) -> bool:
    """Say whether the class at `sizes`, with the state of `thing`, gives its output."""
    call = inferred.call.compiled()
    answers = []
    try:
        fresh = built(sizes)
        fresh.load_state_dict(thing.state_dict())
        for model in (thing, fresh):
            answers.append(_answer(model, call, sizes))
    except Exception:  # code that a user wrote may raise anything
        return False
    one, other = answers
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def _answer(model: nn.Module, call: Callable[..., Any], sizes: Sizes) -> Tensor:
    """Return the output in evaluation mode for tokens that are no pad ids, as far as one knows."""
    source = torch.arange(2, 8).view(2, 3) % sizes.source_vocabulary
    target = torch.arange(3, 7).view(2, 2) % sizes.target_vocabulary
    model = copy_of(model).eval()
    vars(model)["pads"] = sizes.source_pad, sizes.target_pad
    found = call(model, source, target)
    assert isinstance(found, Tensor)
    return found
