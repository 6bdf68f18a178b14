"""Masks that a decoder takes although it hides later positions by itself."""

from dataclasses import replace

from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Reading


def without_own_mask(
    name: str, probe: Probe, adapter: Adapter, reading: Reading
) -> tuple[Adapter, list[str]]:
    """Return `adapter` without the mask of the target where `name` is causal without it.

    Such a mask is one of padding, and is not judged: the assumption says so.
    """
    own = adapter.arguments.roles.get("target_mask", "")
    decodes = adapter.component in ("decoder", "decoder_layer")
    if not own or not decodes or own in reading.arguments.values():
        return adapter, []
    if not probing.is_causal(probe, adapter):
        return adapter, []
    left = replace(
        adapter.arguments,
        roles={role: one for role, one in adapter.arguments.roles.items() if one != own},
        fixed={**adapter.arguments.fixed, own: None},
    )
    said = f"assumed {own}=None: {name} hides later positions by itself, judged without that mask"
    return replace(adapter, arguments=left), [said]
