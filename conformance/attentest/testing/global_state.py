"""Assertions that a component does not change the global state of its process."""

from typing import Any

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.process_state import advance_random_states, read_random_states
from attentest.harness.scripted import DECODING, scripted_inputs
from attentest.harness.subject import Probe, Subject
from attentest.testing.assertions import holds
from attentest.testing.draw import Draw
from attentest.testing.rotary_widths import served_widths
from attentest_spec import COMPONENTS, Sizes
from attentest_spec.contract import MASK_KINDS, Input


def leaves_process_unchanged(subject: Subject, draw: Draw, component: str) -> None:
    """Demand that building, calling and differentiating `component` changes no global state.

    All is done twice and judged the second time: modules imported by a first call may set filters
    and search paths of their own.
    """
    # Heads as narrow as can be, of which the part that is declared can be rotated.
    narrow = served_widths(subject.choices, (4, 8, 16, 32))[0]
    several = subject.choices.key_heads == "fewer" and (subject.limits.heads or 2) > 1
    shared = {"heads": 2, "kv_heads": 1} if several else {}  # as many heads may be refused
    sizes = draw.sizes(head_width=narrow, layers=1, **shared)
    inputs = _inputs(draw, component, sizes)
    for _ in range(2):
        subject.changed.clear()
        probe, by_call = _call(subject, draw, component, sizes, inputs)
    holds(not by_call, f"Calling {component} changes the {', the '.join(by_call)}.")
    changed = sorted({*subject.changed, *_framework(probe).get("changed", ())})
    holds(not changed, f"Building or calling {component} changes the {', the '.join(changed)}.")
    states = [_after_build(subject, component, sizes) for _ in range(2)]
    seeded = [name for name, state in states[0].items() if state == states[1][name]]
    holds(not seeded, f"Building {component} sets the seed: the {', the '.join(seeded)} after it "
          f"is always the same.")  # fmt: skip


def _call(
    subject: Subject, draw: Draw, component: str, sizes: Sizes, inputs: tuple[Input, ...]
) -> tuple[Probe, list[str]]:
    """Build the part and call it; return it, and the names of the state that the call changed."""
    probe = subject.part(component, sizes)
    before = {**advance_random_states(), **_framework(probe)}
    output = probe.output(*inputs)
    after = {**read_random_states(), **_framework(probe)}
    if "gradient" in probe.part.capabilities and np.issubdtype(output.dtype, np.floating):
        probe.vjp(inputs, draw.floats(*output.shape))
    return probe, [name for name in before if before[name] != after[name] and name != "changed"]


def _framework(probe: Probe) -> dict[str, Any]:
    if "globals" not in probe.part.capabilities:
        return {}
    return dict(probe.do("looking at the global state", lambda part: part.global_state()))


def _after_build(subject: Subject, component: str, sizes: Sizes) -> dict[str, Any]:
    """Return the random states after a build; they are advanced before it, so never the same."""
    advance_random_states()
    looked = _framework(subject.part(component, sizes))
    own = {name: state for name, state in looked.items() if name == "random state"}
    return {**read_random_states(), **own}


def _inputs(draw: Draw, component: str, sizes: Sizes) -> tuple[Input, ...]:
    """Return inputs of `component` by their names in the contract."""
    if component in DECODING:
        return scripted_inputs(component, sizes, draw.subject.choices)
    kinds = [kind for kind in MASK_KINDS if kind in draw.subject.limits.masks]
    if not kinds:
        raise Absent(f"{draw.subject.name} supports no kind of mask")
    length = draw.length(1, 3)
    in_heads = component in ("attention", "rotary")
    width = (
        (sizes.heads, length, sizes.d_model // sizes.heads) if in_heads else (length, sizes.d_model)
    )
    mask = draw.mask(kinds[0], 2, sizes.heads, length, length)
    of_memory = draw.mask_kinds(MASK_KINDS, "source_mask")[0]
    named: dict[str, Input] = {
        "tokens": draw.source(2, length, sizes),
        "source": draw.source(2, length, sizes),
        "target": draw.target(2, length, sizes),
        "pad": sizes.source_pad,
        "length": length,
        "output": np.abs(draw.floats(2, length, sizes.target_vocabulary)) + 0.01,
        "chunks": np.array([length]),
        "after": np.array([-1]),
        "origin": np.arange(2)[None],
        "step": 1 + length,
        "parameters": draw.floats(length),
        "gradients": draw.floats(*(length,) if component == "gradient_clipping" else (2, length)),
        "rates": np.full(2, 0.01),
        "groups": np.array([length]),
        "kinds": np.array([0]),
        "present": np.ones((2, 1), dtype=bool),
        "saved": 1,
        "limit": np.array(0.5),
        "positions": None,
        "sublayer": draw.floats(sizes.d_model, sizes.d_model),
        "mask": mask,
        "source_mask": draw.mask(of_memory, 2, sizes.heads, length, length),
        "target_mask": draw.mask("causal", 2, sizes.heads, length, length),
    }
    if component in ("padded_batch", "packed_batch"):
        named |= {"tokens": np.arange(4), "lengths": np.array([2, 2])}
    if component in ("causal_layer", "language_model", "cached_language_model"):
        named["mask"] = None if "padding" not in kinds else np.ones((2, length), dtype=bool)
    if component == "batch":
        named["target"] = draw.target(2, length + 1, sizes)
    return tuple(
        named[name] if name in named else draw.floats(2, *width)
        for name in COMPONENTS[component].inputs
    )
