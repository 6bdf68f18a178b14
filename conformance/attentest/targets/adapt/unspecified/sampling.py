"""Recognises code whose calls depend on more than their input: random numbers, or a cache.

Attention by sampled scores (ProbSparse) is that of all keys in a short call alone. A cache that is
written in place keeps the graph of a call, and the next one cannot be differentiated.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from attentest.harness.subject import Answer
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.limits import any_masks
from attentest.targets.adapt.probing import Probe, undisturbed
from attentest.targets.adapt.reading import Uncovered
from attentest.targets.deep_copies import copy_of

_ATTENDING = ("attention", "multi_head_attention")
_KEEPING = (*_ATTENDING, "encoder_layer", "decoder_layer", "encoder")
"""The components with attention whose cache refuses more texts than it has rows for."""


def demand_calls_alone(code: Code, probe: Probe, adapter: Adapter) -> None:
    """Raise Uncovered for attention whose calls draw random numbers, or write into a cache.

    Layers are asked about for a cache, too.
    """
    if code.component not in _KEEPING:
        return
    if code.component in _ATTENDING:
        _demand_no_draws(code, probe, adapter)
    if kept := list(_written(probe, adapter)):
        raise Uncovered(
            f"{code.name} is not judged as {code.component}: it writes what it computes into "
            f"{' and '.join(kept)}, a cache of a fixed size that later calls read, and that serves "
            f"generation alone: two calls cannot be differentiated. The classes and functions "
            f"around it are judged. --anyway (in Python: anyway=True) judges it all the same."
        )


def _written(probe: Probe, adapter: Adapter) -> Iterator[str]:
    """Yield the tensors that a module holds, and in which a call leaves its graph."""
    if not isinstance(probe.built, nn.Module):
        return
    given = {**probe.given(adapter, keys=5), **any_masks(adapter)}
    try:
        with undisturbed():
            module = copy_of(probe.built)
            adapter(module, *given.values())  # the cache may be cast to the precision of the input
            before = dict(_held(module))
            with torch.enable_grad():
                adapter(module, *given.values())
    except Exception:  # code that a user wrote may raise anything
        return
    after = dict(_held(module))
    for name, one in before.items():
        if after.get(name) is one and one.grad_fn is not None:
            yield name


def _held(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a module that are no parameters."""
    for path, part in module.named_modules():
        for name, one in {**vars(part), **dict(part.named_buffers(recurse=False))}.items():
            if isinstance(one, Tensor):
                yield f"{path}.{name}".lstrip("."), one


def _demand_no_draws(code: Code, probe: Probe, adapter: Adapter) -> None:
    """Raise Uncovered for attention whose short calls draw random numbers that change nothing.

    Numbers that change an output are a mistake to be found.
    """
    (one, drew), (other, _) = (_called(probe, adapter, seed) for seed in (1, 2))
    if drew and one is not None and other is not None and torch.equal(one, other):
        raise Uncovered(
            f"{code.name} is not judged as {code.component}: it draws random numbers in "
            f"evaluation, which change nothing in a short call, as attention that samples its "
            f"scores does. What is judged, and what is not: docs/what-is-judged.md. --anyway (in "
            f"Python: anyway=True) judges it all the same."
        )


def _called(probe: Probe, adapter: Adapter, seed: int) -> tuple[Tensor | None, bool]:
    """Return the output of a call after `seed`, and whether the call drew random numbers."""
    given = {**probe.given(adapter, keys=5), **any_masks(adapter)}
    with undisturbed():
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        try:
            output = adapter(probe.built, *given.values())
        except Exception:  # code that a user wrote may raise anything
            return None, False
        drew = not torch.equal(before, torch.get_rng_state())
    found = Answer.of(output).output
    return (found if isinstance(found, Tensor) else None), drew
