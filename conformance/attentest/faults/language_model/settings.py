"""The choices that faults of decoder-only models are injected under."""

from typing import Any

from attentest.faults.reference_models import Hooks
from attentest_spec.choices import Value

Declared = dict[str, Value]

PRE: Declared = {"block_norms": "pre", "final_norm": "present"}
LEARNED: Declared = {"positional_encoding": "learned"}
ROTARY: Declared = {
    **PRE,
    "positional_encoding": "none",
    "attention_rotary": "query-and-key",
    "tying": "none",
    "output": "logits",
}
"""Choices as in most models today, with layer norms."""


def as_if(self: Hooks, **choices: Any) -> Hooks:
    """Return the correct model under other choices, to call its hooks with the same parts."""
    return type(self.correct)(self.sizes, self.choices.but(**choices))
