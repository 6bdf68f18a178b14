"""Code that hides later positions by itself, and what its mask does then."""

import re

from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.probing import Probe

UNMASKED = (
    "assumed that it hides later positions on purpose, as its name says: it is judged as causal, "
    "without {}"
)
_ORDERED = re.compile(r"causal|decoder|gpt|lm$|lm_?head|autoregressive", re.IGNORECASE)


def mask_beside_order(code: Code, probe: Probe, adapter: Adapter) -> str:
    """Return the mask argument of layers in a class that is causal by its name, and shows it."""
    own = adapter.arguments.roles.get("mask", "")
    if not own or code.inner is None or not _ORDERED.search(code.name):
        return ""
    return own if hides_later(probe, adapter) else ""


def hides_later(probe: Probe, adapter: Adapter) -> str:
    """Recognise attention that hides later positions although its mask is left out."""
    judged = ("attention", "decoder_layer", *probing.SEQUENCES)
    if adapter.causal or adapter.component not in judged:
        return ""
    if not probing.is_causal(probe, adapter, joined=True):
        return ""
    mask = adapter.arguments.roles.get("mask", "")
    advice = f"; --give {mask}=None judges it without its mask" if mask else ""
    if adapter.component == "decoder_layer":
        advice = ", and takes a mask besides: its parts can be judged one by one"
    return f"it hides later positions by itself{advice}"


def mask_as_a_flag(probe: Probe, adapter: Adapter) -> str:
    """Return the mask argument that makes code causal by being there, "" where there is none."""
    own = adapter.arguments.roles.get("mask", "")
    if not own or adapter.causal or adapter.component not in ("attention", *probing.SEQUENCES):
        return ""
    masked = probing.is_causal(probe, adapter, joined=True, masked=True)
    return own if masked and not probing.is_causal(probe, adapter, joined=True) else ""


def mask_for_order(probe: Probe, adapter: Adapter) -> str:
    """Return the mask argument that takes the place of built-in causality, "" for none."""
    own = adapter.arguments.roles.get("mask", "")
    if not own or adapter.component not in ("attention", *probing.SEQUENCES):
        return ""
    alone = probing.is_causal(probe, adapter, joined=True)
    return own if alone and probing.sees_all(probe, adapter) else ""
