"""Decoder-only models that take one text (T,), without an axis for several texts."""

from dataclasses import replace

import torch
from torch import nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.calling import Call, inputs_of, probe_tokens
from attentest.targets.language_models.construction.building import PROBE, Building
from attentest.targets.language_models.surrounded.modules import OneText
from attentest.targets.models.results import parts_of

_ONE_TEXT = (
    "assumed that it takes one text (T,), as a call with several fails: it is called with each of "
    "them, and if it is meant to take (B, T), this is a mistake"
)


def of_one_text(built: Building, model: nn.Module, plain: Call) -> Building | None:
    """Return `built` with each text given by itself, None where that gives no logits (T, V)."""
    if f"{OneText.__name__}(" in built.expression or plain.required or plain.placed:
        return None
    tokens = probe_tokens()[0]
    inputs = {**inputs_of(plain, tokens[None]), plain.tokens: tokens}
    try:
        with undisturbed():
            found = [one for _, one, _ in parts_of(model(**inputs))]
    except Exception:  # code that a user wrote may raise anything
        return None
    shape = torch.Size([len(tokens), PROBE.target_vocabulary])
    if not any(one.shape == shape for one in found):
        return None
    return replace(
        built,
        expression=f'{OneText.__name__}({built.expression}, "{plain.tokens}")',
        space={**built.space, OneText.__name__: OneText},
        doubts=(*built.doubts, _ONE_TEXT),
    )
