"""Recognises attention that draws random numbers in evaluation: it samples keys or queries.

Attention by sampled scores (ProbSparse) is that of all keys in a short call alone.
"""

import torch
from torch import Tensor

from attentest.harness.subject import Answer
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.limits import any_masks
from attentest.targets.adapt.probing import Probe, undisturbed
from attentest.targets.adapt.reading import Uncovered

_ATTENDING = ("attention", "multi_head_attention")


def demand_no_draws(code: Code, probe: Probe, adapter: Adapter) -> None:
    """Raise Uncovered for attention whose short calls draw random numbers that change nothing.

    Numbers that change an output are a mistake to be found.
    """
    if code.component not in _ATTENDING:
        return
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
