"""Layers whose signature shows that they take one sequence."""

import inspect
from collections.abc import Sequence

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import ROLES, turns


def one_sequence(
    component: str, signature: inspect.Signature, free: Sequence[str]
) -> tuple[str, ...]:
    """Return the arguments of `free` that are query, key and value, where all must be given.

    () for a component that is no layer of an encoder, and where one of the three is not named.
    """
    if component != "encoder_layer":
        return ()
    own = {squashed(one): one for one in free}
    found = [
        next((own[name] for name in ROLES[role] if name in own), "")
        for role in ("query", "key", "value")
    ]
    required = inspect.Parameter.empty
    is_asked = all(one and signature.parameters[one].default is required for one in found)
    return tuple(found) if is_asked else ()


def is_of_one_text(signature: inspect.Signature) -> bool:
    """Say whether a decoder layer is one of a decoder-only model, and takes no memory.

    It needs one sequence alone beside rotary positions, which only such layers are given.
    """
    own = {squashed(name): one for name, one in signature.parameters.items()}
    empty = inspect.Parameter.empty
    needed = [name for name, one in own.items() if one.default is empty and "mask" not in name]
    turning = [name for name in needed if turns(name)]
    alone = bool(turning) and len(needed) == len(turning) + 1
    return alone and not own.keys() & {*ROLES["memory"]}
