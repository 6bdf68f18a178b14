"""Layers whose signature asks for value, key and query, which are one sequence in an encoder."""

import inspect
from collections.abc import Sequence

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import ROLES


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
