"""The lines of code with the parts of later models: positions inside attention, RMS norms, gates."""

import numpy as np
import pytest

from attentest.analysis.lines import cases
from attentest.analysis.lines.formula import Formula
from attentest.analysis.lines.formulas import build
from attentest.harness.oracle import Reference
from attentest.harness.subject import Subject
from attentest_spec import COMPONENTS, Choices

TURNED = {"attention_rotary": "query-and-key", "attention_causality": "built-in"}
LATER = {"norm_kind": "rms", "feed_forward_gate": "gated", "activation": "silu"}
ATTENTION = {
    "halves": {**TURNED, "rotary_pairs": "halves"},
    "pairs": {**TURNED, "rotary_pairs": "adjacent", "rotary_base": 500_000.0},
    "rounded": {**TURNED, "rotary_arithmetic": "float32", "key_heads": "fewer"},
    "backward": {**TURNED, "rotary_direction": "backward", "rotary_width": 0.5},
    "alibi": {"relative_bias": "alibi"},
    "causal alibi": {"relative_bias": "alibi-geometric", "attention_causality": "built-in"},
    "norm per head": {**TURNED, "query_key_norm": "per-head"},
    "norm of a row": {"query_key_norm": "whole-projection", "key_heads": "fewer"},
    "norm behind": {
        **TURNED,
        "query_key_norm": "unit-length",
        "query_key_norm_place": "after-rotation",
    },
    "window": {**TURNED, "attention_window": "with-query"},
    "cap": {"score_scale": 0.25, "score_cap": 3.0},
}


def formula_of(component: str, choices: Choices, layers: int = 1):
    """Return the formula of a call of the reference, and what the reference answers."""
    subject = Subject(Reference(choices), choices=choices)
    masked = "none" if component in cases._UNMASKED else "per-sample"
    cases._call(subject, component, "", masked, layers)
    question = subject.trace[-1].question
    formula = Formula(question.probe.sizes, choices, question.probe.parameters)
    given = dict(zip(COMPONENTS[component].inputs, question.inputs, strict=True))
    build(formula, component, "", given)
    return formula, question.probe.expected(*question.inputs).output


@pytest.mark.parametrize("chosen", ATTENTION.values(), ids=ATTENTION)
def test_formula_of_later_attention_is_the_references(chosen) -> None:
    formula, expected = formula_of("multi_head_attention", Choices().but(**chosen))
    np.testing.assert_allclose(formula.output.value, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("component", ["residual", "encoder_layer", "decoder_layer", "encoder"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_formula_of_later_layers_is_the_references(component, placement) -> None:
    choices = Choices().but(
        **LATER, attention_rotary="query-and-key", norm_placement=placement, final_norm="present"
    )
    formula, expected = formula_of(component, choices, layers=2)
    np.testing.assert_allclose(formula.output.value, expected, rtol=1e-12, atol=1e-13)
