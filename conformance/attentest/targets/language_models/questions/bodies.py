"""Bodies of decoder-only models, which return states and no logits."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.models.results import parts_of

OF_BODIES = "it returns states of the width of the model, and no logits"
_BODY = (
    f"{OF_BODIES}. {{0}} is the body of one: a class "
    "of yours that puts a head on it (self.head({0}(..)(tokens))) is judged, and --as encoder "
    "judges its layers"
)


def words_on_body(model: nn.Module, inputs: Mapping[str, Any], name: str) -> str:
    """Return the words on a call that gives states (B, T, D), "" for one that does not."""
    tokens = next((one for one in inputs.values() if isinstance(one, Tensor)), None)
    try:
        with undisturbed():
            parts = [one for _, one, _ in parts_of(model(**inputs))]
    except Exception:  # code that a user wrote may raise anything
        return ""
    shape = (*tokens.shape, PROBE.d_model) if tokens is not None else ()
    return _BODY.format(name) if any(tuple(one.shape) == shape for one in parts) else ""
