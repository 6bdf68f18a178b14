"""Choices inside attention are identified from numbers alone."""

import pytest

from attentest.analysis.identify import identify
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend

TURNED = {"attention_rotary": "query-and-key"}
CASES = [
    {**TURNED, "rotary_pairs": "halves", "attention_causality": "built-in"},
    {**TURNED, "rotary_pairs": "adjacent", "rotary_base": 500_000.0, "key_heads": "fewer"},
    {"relative_bias": "alibi", "attention_causality": "built-in"},
]


@pytest.mark.parametrize("name", REFERENCE_MODELS)
@pytest.mark.parametrize("choices", CASES, ids=lambda one: "-".join(map(str, one.values())))
def test_positions_inside_attention_are_identified(choices, name):
    backend = reference_backend(REFERENCE_MODELS[name], choices)
    found = identify(backend, ["multi_head_attention"])
    assert {choice: found[choice].measured for choice in choices} == choices


def test_attention_without_positions_shows_none():
    backend = reference_backend(REFERENCE_MODELS["plain"])
    found = identify(backend, ["multi_head_attention"])
    assert found["attention_rotary"].measured == "none"
    assert found["relative_bias"].measured == "none"
    assert found["attention_causality"].measured == "by-mask"
