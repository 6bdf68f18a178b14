"""The parameters that a decoder-only model takes: its structure, before any number is compared."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from attentest.analysis.identify.structure import OFFSETS, asking
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Probe, Subject
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.parameters import draw, shapes

Change = Mapping[str, Value]

FEWEST = Choices(
    tying="none",
    norm_kind="rms",
    rms_weight="none",
    block_norms="pre",
    block_layout="parallel-one-norm",
    positional_encoding="none",
    norm_bias="none",
    feed_forward_bias="none",
    generator_bias="none",
)
"""The choices of which a decoder-only model has fewest parameters."""

MORE: tuple[tuple[Change, ...], ...] = (
    ({"rms_weight": "weight"},),
    ({"rms_bias": "present"},),
    ({"block_layout": "sequential"},),
    ({"block_norms": "sandwich"},),
    ({"final_norm": "present"},),
    ({"embedding_norm": "present"},),
    ({"key_heads": "fewer"},),
    ({"feed_forward_gate": "gated"},),
    ({"feed_forward_bias": "present"},),
    ({"generator_bias": "present"},),
    tuple(
        {"projection_bias": one}
        for one in ("output-alone", "all-but-output", "all-but-key", "present")
    ),
    tuple({"positional_encoding": "learned", "position_offset": one} for one in OFFSETS),
    ({"relative_bias": "buckets"},),
    ({"attention_sink": "per-head"},),
)
"""Changes that add parameters; of one group the last that is taken counts."""

OF_HEADS = ("per-head", "whole-projection")
"""Norms of queries and keys that have weights."""


def language_structure(
    subject: Subject, component: str, sizes: Sizes
) -> tuple[Choices, Probe] | None:
    """Return the fullest structure that `component` takes, with the part; None for no structure.

    A part that leaves alone what it is not given, as the torch adapter does, is asked; one that
    knows its own parameters is read. Raises what building raises.
    """
    takes = _asked(subject, component, sizes)
    bare = [FEWEST.but(head_width=one) for one in ("d/h", "d")]
    bare += [one.but(key_heads="fewer") for one in bare]
    begun = next((one for one in bare if takes(one)), None)
    if begun is None:
        return None
    for group in MORE:
        wanted = [begun.but(**change) for change in group]
        begun = next((one for one in reversed(wanted) if takes(one)), begun)
    begun = next((one for one in _with_norms_of_heads(begun) if takes(one)), begun)
    subject.begin()
    subject.backend = asking(subject.backend, begun)
    given = draw(component, sizes, begun, np.random.default_rng(5), decimals=6)
    try:
        probe = subject.part(component, sizes, parameters=given)
    except (Absent, BackendError, Violation):  # it refuses different values for one parameter
        begun = begun.but(tying="all-three")
        given = draw(component, sizes, begun, np.random.default_rng(5), decimals=6)
        probe = subject.part(component, sizes, parameters=given)
    if not _adapted(subject) and set(probe.do("exporting", lambda one: one.export())) != set(
        shapes(component, sizes, begun)
    ):
        return None
    return begun, probe


def _with_norms_of_heads(begun: Choices) -> Iterator[Choices]:
    """Yield `begun` with norms of queries and keys, whose weights may be others than the rest's."""
    layer = begun.but(norm_kind="layer", norm_bias=begun.rms_bias)
    bases = [begun, layer.but(rms_bias="none"), layer.but(rms_bias="present")]
    for base in bases[: 3 if begun.rms_weight == "weight" else 1]:
        yield from (base.but(query_key_norm=one) for one in OF_HEADS)


def _adapted(subject: Subject) -> bool:
    """Say whether the backend is one that takes the parameters that it is asked to."""
    return asking(subject.backend, FEWEST) is not subject.backend


def _asked(subject: Subject, component: str, sizes: Sizes) -> Callable[[Choices], bool]:
    """Return a function that says whether the part has the parameters of some choices."""
    if not _adapted(subject):
        subject.begin()
        probe = subject.part(component, sizes)
        own = probe.do("exporting the parameters", lambda one: one.export())
        held = {name: tuple(values.shape) for name, values in own.items()}
        return lambda choices: shapes(component, sizes, choices).items() <= held.items()

    def takes(choices: Choices) -> bool:
        try:
            subject.begin()
            subject.backend = asking(subject.backend, choices)
            given = draw(component, sizes, choices, np.random.default_rng(5), decimals=6)
            subject.part(component, sizes, parameters=given)
        except (Absent, BackendError, Violation):
            return False
        return True

    return takes
