"""Calls of decoder-only models with labels, next to those without them."""

from dataclasses import replace

from torch import nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.calling import (
    NO_LOGITS,
    Call,
    is_causal,
    probe_tokens,
    with_part,
)
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.models.results import parts_of

ONE_ANSWER = 1e-3
"""Difference in logits of about 1 beyond which two answers are not one, in single precision too."""


def may_hide_with_labels(model: nn.Module, call: Call, labels: str) -> bool:
    """Say whether a call with labels hides later tokens, or raises, where `call` has none.

    `labels` is the argument that takes them. Code that generates may be called with one token.
    """
    if not labels or call.labels:
        return False
    made = with_part(model, replace(call, labels=labels))
    return is_causal(model, made) if isinstance(made, Call) else made != NO_LOGITS


def apart_without_labels(model: nn.Module, call: Call) -> float | None:
    """Return by how much the last step differs where `model` is called without labels.

    Code that generates calls it so, and some models have logits (B, 1, V) or (B, V) for it, or
    their probabilities. None where there is no such output, or where all steps are returned.
    """
    if not call.labels:
        return None
    tokens = probe_tokens()
    rows, vocabulary = len(tokens), PROBE.target_vocabulary
    shapes = [
        (rows, vocabulary),
        (1, rows, vocabulary) if call.sequence_first else (rows, 1, vocabulary),
    ]
    given = {call.tokens: tokens.T if call.sequence_first else tokens, **call.fixed}
    try:
        with undisturbed():
            last = call.compiled()(model, tokens)[:, -1]
            several = [part for _, part, _ in parts_of(model(**given))]
    except Exception:  # code that a user wrote may raise anything
        return None
    found = next((part for part in several if tuple(part.shape) in shapes), None)
    if found is None:
        return None
    forms = (last, last.softmax(-1), last.log_softmax(-1))
    return float(min((found.reshape(rows, vocabulary) - one).abs().max() for one in forms))
