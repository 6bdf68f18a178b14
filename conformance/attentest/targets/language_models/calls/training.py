"""Results of a decoder-only model in training mode, which may be others than when it is used."""

from dataclasses import replace

from torch import Tensor, nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.calling import Call, inputs_of, probe_tokens

NOT_IN_TRAINING = (
    "steps with a cache are not judged: a call in training mode returns the logits alone"
)


def with_training(model: nn.Module, call: Call) -> Call:
    """Return `call` for a model whose result is the logits alone where it is trained."""
    if call.part is None:
        return call
    before = model.training
    try:
        with undisturbed():
            result = model.train()(**inputs_of(call, probe_tokens(), model))
    except Exception:  # code that a user wrote may raise anything
        return call
    finally:
        model.train(before)
    return replace(call, bare=True) if isinstance(result, Tensor) else call
