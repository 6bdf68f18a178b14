"""The loss that a decoder-only model returns for labels: of which token they are the labels."""

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.targets.language_models.calling import Call, inputs_of, probe_tokens
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.language_models.numbers.tracing import NEAR
from attentest.targets.models.results import parts_of
from attentest.targets.single import widened


def distance_of_labels(model: nn.Module, call: Call, labels: str) -> int | None:
    """Return by how many tokens the labels of a returned loss are ahead of the logits.

    `labels` is the argument that gets them. None for a loss that is no mean of cross entropies at
    one distance, or that is not known.
    """
    if (measured := _measured(model, call, labels)) is None:
        return None
    loss, logits, others = measured
    found = [ahead for ahead, one in _expected(logits, others).items() if _is_near(loss, one)]
    usual = [ahead for ahead in found if ahead in (0, 1)]
    return next(iter([*usual, *found]), None)


def keeps_own_tokens(model: nn.Module, call: Call, switch: str) -> bool:
    """Say whether the loss that `switch` asks for compares the logits of each token with itself.

    The model takes no labels: those of its loss are the tokens that it is given.
    """
    tokens = probe_tokens()
    try:
        with widened():
            logits = call.compiled()(model, tokens)
            losses = list(_losses(model(**{**inputs_of(call, tokens, model), switch: True})))
    except Exception:  # code that a user wrote may raise anything
        return False
    if len(losses) != 1 or logits.shape[:2] != tokens.shape:
        return False
    return _is_near(losses[0], _expected(logits, tokens)[0])


def cuts_own_labels(model: nn.Module, call: Call, labels: str) -> bool:
    """Say whether a returned loss is that of the labels of all tokens but the last one.

    A loss that moves its labels by one leaves out the last token, and this one moves none.
    """
    if (measured := _measured(model, call, labels)) is None:
        return False
    loss, logits, others = measured
    return _is_near(loss, _expected(logits[:, :-1], others[:, :-1])[0])


def words_on_another_loss(model: nn.Module, call: Call, labels: str) -> str:
    """Return the words on a returned loss that is no mean of cross entropies, "" for none.

    They name the usual mistake or variant that gives its very number, where there is one.
    """
    if (measured := _measured(model, call, labels)) is None:
        return ""
    loss, logits, others = measured
    named = (words for words, one in _variants(logits, others) if _is_near(loss, one))
    known = next(named, "another one")
    own, next_one = (_expected(logits, others)[ahead] for ahead in (0, 1))
    return (
        f"assumed that its loss for {labels} is meant: it is {known}, and not the mean cross "
        f"entropy of its logits ({loss:.4g}, not {own:.4g} for these labels, or {next_one:.4g} for "
        f"the next ones), which is a mistake if that is meant; no clause judges it"
    )


def _variants(logits: Tensor, labels: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield other losses of logits and labels that are written, each in a few words."""
    wide = logits.double()
    moved = labels.roll(-1, dims=1)
    yield "that of labels of which the first is moved to the end", _expected(wide, moved)[0]
    for ahead in (0, 1):
        scores, meant = wide[:, : wide.shape[1] - ahead].flatten(0, 1), labels[:, ahead:].flatten()
        loss = partial(functional.cross_entropy, target=meant)
        shares = scores.softmax(-1)
        yield "that of their softmax, taken for logits", loss(shares)
        yield "the sum over all tokens", loss(scores, reduction="sum")
        yield "the sum over the tokens of a text", loss(scores, reduction="sum") / len(labels)
        yield "the negative mean share of the labels", functional.nll_loss(shares, meant)
        for one in _SMOOTHED:
            yield f"one with label smoothing {one}", loss(scores, label_smoothing=one)
    yield "that of the last token alone", functional.cross_entropy(wide[:, -1], labels[:, -1])


_SMOOTHED = (0.1, 0.05, 0.2, 0.01)
"""Shares that label smoothing takes, as they are in use."""


def _measured(model: nn.Module, call: Call, labels: str) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return the loss of a call with labels, its logits and the labels; None where none is one."""
    if not labels or call.sequence_first or call.order:
        return None
    tokens = probe_tokens()
    others = _FEWEST + tokens.flip(0).flip(1) % _FEWEST
    try:
        with widened():
            logits = call.compiled()(model, tokens)
            losses = list(_losses(model(**{**inputs_of(call, tokens, model), labels: others})))
    except Exception:  # code that a user wrote may raise anything
        return None
    is_known = len(losses) == 1 and logits.shape[:2] == tokens.shape
    return (losses[0], logits, others) if is_known else None


_FEWEST = PROBE.target_vocabulary // 2
"""The least label that is given, as the first ids are those of padding, which may be ignored."""


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
