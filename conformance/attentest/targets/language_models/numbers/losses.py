"""The loss that a decoder-only model returns for labels: which token it expects after which."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.numbers.tracing import NEAR, widened
from attentest.targets.models.results import parts_of


def question_on_loss(name: str, model: nn.Module, call: Call, labels: str) -> str:
    """Return the question on a loss that compares no token with itself or the next, "" for none.

    `labels` is the argument that gets them. A loss that is no mean of cross entropies at one
    distance is not known, and not asked about.
    """
    if not labels or call.sequence_first or call.mask or call.order:
        return ""
    tokens = probe_tokens()
    others = tokens.flip(0).flip(1)
    given = {call.tokens: tokens, **call.fixed, labels: others}
    try:
        with widened():
            logits = call.compiled()(model, tokens)
            losses = list(_losses(model(**given)))
    except Exception:  # code that a user wrote may raise anything
        return ""
    if len(losses) != 1 or logits.shape[:2] != tokens.shape:
        return ""
    found = [ahead for ahead, one in _expected(logits, others).items() if _is_near(losses[0], one)]
    if not found or {0, 1} & {*found}:
        return ""
    way = f"{abs(found[0])} {'after' if found[0] > 0 else 'before'}"
    return (
        f"The loss that {name} returns for {labels} compares the logits of each token with the "
        f"label {way} it: those of the token itself, or of the next one, are usual. If its "
        f"{labels} are moved before they are given, --give {labels}=None (in Python: "
        f"given={{{labels!r}: None}}) judges the model without its loss; otherwise it is a mistake."
    )


def _losses(result: object) -> Iterator[Tensor]:
    """Yield the numbers of a result that are tensors without axes."""
    yield from (one for _, one, _ in parts_of(result) if one.dim() == 0)


def _expected(logits: Tensor, labels: Tensor) -> Mapping[int, Tensor]:
    """Return the mean loss of logits (B, T, V) for labels (B, T) that are some steps ahead."""
    length = labels.shape[1]
    wide = logits.double()
    found = {}
    for ahead in range(1 - length, length):
        scores = wide[:, max(0, -ahead) : length - max(0, ahead)]
        meant = labels[:, max(0, ahead) : length + min(0, ahead)]
        found[ahead] = functional.cross_entropy(scores.flatten(0, 1), meant.flatten())
    return found


def _is_near(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one.double(), other, rtol=NEAR, atol=NEAR)
