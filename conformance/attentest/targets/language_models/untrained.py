"""Decoder-only models for inference alone, which no gradients are asked of."""

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.construction.building import PROBE, Building
from attentest.targets.language_models.steps.one_by_one import ONE_BY_ONE, OneByOne
from attentest.targets.single import widened
from attentest_spec.torch.untrained import HOLDS_CALLS, SWITCHES_OFF, InferenceAlone

_ASSUMED = (
    "assumed that it is for inference alone, as {}: no gradients are judged, and if it is to be "
    "trained, this is a mistake"
)


def never_trained(built: Building, call: Call) -> list[str]:
    """Return the sentence on a model whose call keeps no gradients, or those of the one before.

    A call that raises shows nothing.
    """
    if isinstance(call, OneByOne):
        return [ONE_BY_ONE.format(call.counted)]
    try:
        with undisturbed(), widened():
            model, compiled = built(PROBE).double(), call.compiled()
            alone = InferenceAlone(model, lambda: compiled(model, probe_tokens()))
            if alone.switches_off():
                return [_ASSUMED.format(SWITCHES_OFF)]
            return [_ASSUMED.format(HOLDS_CALLS)] * alone.holds_calls()
    except Exception:  # code that a user wrote may raise anything
        return []
