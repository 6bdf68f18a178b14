"""Structures of a component: asking a part for the shapes of its parameters changes no answer."""

import pytest
from reference_backends import built

from attentest.analysis.identify.structure import structures
from attentest.harness.subject import Subject
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.torch.backend import TorchPart

SIZES = Sizes(d_model=8, heads=2, d_ff=10, layers=2, kv_heads=1, max_length=8)


def taken(component: str, choices: dict[str, Value]) -> list[Choices]:
    """Return the structures that a component of the reference model under `choices` takes."""
    subject = Subject(built("plain", choices))
    return [found for found, _ in structures(subject, component, SIZES)]


@pytest.mark.parametrize(
    ("component", "choices"),
    [
        ("multi_head_attention", {"head_width": "d", "projection_bias": "output-alone"}),
        ("encoder_layer", {"norm_kind": "rms", "feed_forward_gate": "gated"}),
        ("encoder", {"final_norm": "present", "norm_bias": "none"}),
    ],
)
def test_shapes_rule_out_no_structure_that_loading_takes(
    component: str, choices: dict[str, Value], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = taken(component, choices)
    assert found
    monkeypatch.delattr(TorchPart, "parameter_shape")
    assert taken(component, choices) == found


def test_a_part_tells_the_shape_of_a_parameter_by_its_map() -> None:
    part = built("plain", {}).build("multi_head_attention", SIZES)
    assert part.parameter_shape("query.weight") == (8, 8)
    with pytest.raises(ValueError, match="which the module does not have"):
        part.parameter_shape("query.gain")
    with pytest.raises(KeyError, match="no entry"):
        part.parameter_shape("nothing")
