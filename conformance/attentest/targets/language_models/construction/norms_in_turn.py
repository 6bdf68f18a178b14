"""Norms that hold less than the spec's: decoder-only models are judged with more of them.

They have one for both sublayers of each layer, or train one number for all columns.
"""

from dataclasses import replace

import torch
from torch import nn

from attentest.targets.adapt.encoders.entering import is_norm
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.wrappers.own_norms import IN_TURN
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.construction.building import PROBE, Building
from attentest.targets.language_models.probing import probe_of, probe_sizes
from attentest.targets.models.tables.norms_in_turn import CountedNorms, tied_name, untied
from attentest.targets.models.tables.single_numbers import SAID, in_columns, scalar_norms


def with_own_norms(built: Building, call: Call) -> Building:
    """Return `built` with a norm for each sublayer, where the layers of a list have one for all.

    It is returned as it is where there is none, and where the numbers are others then.
    """
    model, function, tokens = probe_of(built, probe_sizes(built)), call.compiled(), probe_tokens()
    counted = CountedNorms(model)
    try:
        with undisturbed():
            function(model, tokens)
    except Exception:  # code that a user wrote may raise anything
        return built
    finally:
        counted.close()
    found = list(counted.shared())
    if not found or not all(_is_alone(model, layers) for layers, _, _ in found):
        return built
    doubt = IN_TURN.format(", ".join(dict.fromkeys(f"{at}.0.{norm}" for at, norm, _ in found)))
    other = replace(
        built,
        expression=f"{untied.__name__}({built.expression}, {found})",
        space={**built.space, untied.__name__: untied},
        doubts=(*built.doubts, doubt),
    )
    return other if _computes(other, built, call) else built


def with_columns(built: Building) -> Building:
    """Return `built` with a number for each column in its norms that hold one for all.

    It is returned as it is where it has none, or where they are no norms of the spec.
    """
    if not (kind := scalar_norms(built, PROBE)):
        return built
    return replace(
        built,
        expression=f"{in_columns.__name__}({built.expression}, sizes.d_model, {kind!r})",
        space={**built.space, in_columns.__name__: in_columns},
        doubts=(*built.doubts, SAID.format(kind)),
    )


def _is_alone(model: nn.Module, layers: str) -> bool:
    """Say whether the first layer of a list holds one norm: code with two may confuse them."""
    first = next(model.get_submodule(layers).children())
    return sum(map(is_norm, first.modules())) == 1


def _computes(other: Building, built: Building, call: Call) -> bool:
    """Say whether the model with norms of their own has the numbers of that which is `built`."""
    tied, model = (_fresh(one) for one in (built, other))
    held = dict(tied.named_parameters())
    tokens = probe_tokens()
    with torch.no_grad():
        for name, one in model.named_parameters():
            if tied_name(name) not in held:  # the norm has another name in the layer
                return False
            one.copy_(held[tied_name(name)])
    with undisturbed():
        answers = [call.compiled()(one, tokens) for one in (tied, model)]
    return torch.equal(*answers)


def _fresh(built: Building) -> nn.Module:
    return probe_of(built, probe_sizes(built))
