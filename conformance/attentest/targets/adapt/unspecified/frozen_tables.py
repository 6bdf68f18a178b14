"""Embeddings whose table is frozen and detached: nothing trains it, as nothing is meant to."""

import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.probing import Probe, undisturbed
from attentest.targets.adapt.reading import Uncovered


def demand_trained(name: str, probe: Probe, adapter: Adapter) -> None:
    """Raise Uncovered for an embedding of which no parameter is meant to be trained.

    All of them are built without gradients, and none gets one where it is asked for.
    """
    built = probe.built
    if adapter.component != "embedding" or not isinstance(built, nn.Module):
        return
    held = [*built.parameters()]
    if not held or any(one.requires_grad for one in held):
        return
    given = probe.given(adapter)
    with undisturbed(), torch.enable_grad():
        for one in held:
            one.requires_grad_(True)
        try:
            found = adapter(built, *given.values())
        except Exception:  # code that a user wrote may raise anything
            return
        finally:
            for one in held:
                one.requires_grad_(False)
    if isinstance(found, Tensor) and not found.requires_grad:
        raise Uncovered(
            f"{name} looks its rows up in a table that is not trained: it is built with "
            f"requires_grad=False, and its rows are detached. The table of an embedding is trained."
        )
