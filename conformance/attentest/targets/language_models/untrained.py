"""Decoder-only models whose call switches gradients off, as code for inference alone."""

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.building import PROBE, Building
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest_spec.torch.untrained import keeps_no_gradients

NEVER_TRAINED = (
    "assumed that it is for inference alone, as its call switches gradients off: none are judged, "
    "and if it is to be trained, this is a mistake"
)


def never_trained(built: Building, call: Call) -> bool:
    """Say whether a call of the model switches gradients off, whatever its caller wants."""
    with undisturbed():
        model = built(PROBE)
        compiled = call.compiled()
        return keeps_no_gradients(model, lambda: compiled(model, probe_tokens()))
