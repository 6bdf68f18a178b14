"""The entries of a parameter map that a user gives, against what both sides have."""

import re
from collections.abc import Sequence

from torch import nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.probing import SIZES, Probe
from attentest.targets.adapt.reading import Reading, Unclear
from attentest_spec import Choices, UnknownName
from attentest_spec.parameters import shapes


def check_places(code: Code, probe: Probe, reading: Reading) -> None:
    """Refuse an entry of the parameter map for what one of the two sides does not have."""
    if not reading.parameters:
        return
    choices = Choices().but(
        norm_bias="present",
        projection_bias="present",
        final_norm="present",
        feed_forward_gate="gated",
        rms_bias="present",
    )
    known = [re.sub(r"\b\d+\b", "*", one) for one in shapes(code.component, SIZES, choices)]
    module = probe.built if isinstance(probe.built, nn.Module) else nn.Module()
    own = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    starred = [re.sub(r"\b\d+\b", "*", one) for one in own]
    for name, path in reading.parameters.items():
        if not _begins(name, [*known, *shapes(code.component, SIZES, choices)]):
            raise UnknownName("parameter", name, known)
        if not _begins(path, [*own, *starred]):
            listed = ", ".join(own) or "none"
            raise Unclear(f"{code.name} has no parameter {path!r}; it has {listed[:600]}.")


def _begins(start: str, names: Sequence[str]) -> bool:
    return any(f"{name}.".startswith(f"{start}.") for name in names)
