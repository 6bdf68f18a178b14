"""Faults in gradients, precisions and side effects."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Seams


@fault(
    "positional_encoding.everything-in-half",
    clause="positional_encoding.half-precision",
    origin="B048",
    wrong="Positions and frequencies are in the precision of the input.",
    effect="In half precision late positions run together.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    places = self.sound.positions(len(rows), x.device).to(x.dtype)
    turns = self.sound.frequencies(self.sizes.d_model, x.device).to(x.dtype)
    angles = self.sound.angles(places, turns)
    return x + self.sound.arrange(angles.sin(), angles.cos(), self.sizes.d_model)


@fault(
    "positional_encoding.positions-in-half",
    clause="positional_encoding.half-precision",
    origin="B048",
    wrong="Positions are counted in the precision of the input.",
    effect="In half precision late positions run together.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    places = self.sound.positions(len(rows), x.device).to(x.dtype).double()
    angles = self.sound.angles(places, self.sound.frequencies(self.sizes.d_model, x.device))
    return self.sound.add_rows(
        x, self.sound.arrange(angles.sin(), angles.cos(), self.sizes.d_model)
    )


@fault(
    "positional_encoding.input-detached",
    clause="positional_encoding.gradient-is-identity",
    wrong="The input is detached before the sum.",
    effect="The embeddings are never trained.",
    kind="gradient",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x.detach(), rows)


@fault(
    "positional_encoding.first-position-detached",
    clause="positional_encoding.gradient-is-identity",
    wrong="The first position is detached.",
    effect="The token that starts a sentence is never trained.",
    kind="gradient",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(torch.cat((x[:, :1].detach(), x[:, 1:]), dim=1), rows)


@fault(
    "positional_encoding.gradient-doubled",
    clause="positional_encoding.gradient-is-identity",
    wrong="The input reaches the sum on two ways, one of which adds nothing to it.",
    effect="The embeddings are trained at twice the rate.",
    kind="gradient",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows) + (x - x.detach())


@fault(
    "positional_encoding.added-in-place",
    clause="positional_encoding.input-untouched",
    wrong="The rows are added to the caller's own input.",
    effect="A second call adds them twice.",
    kind="state",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return x.add_(rows.to(x.dtype))


@fault(
    "positional_encoding.counted-on-from-last-call",
    clause="positional_encoding.input-untouched",
    origin="B119",
    wrong="An offset of step-by-step decoding is left from the call before.",
    effect="The second sentence begins where the first one ended.",
    kind="state",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    offset = self.memory["offset"] = self.memory.get("offset", -1) + 1
    return self.sound.add_rows(x, rows.roll(-offset, dims=0))


@fault(
    "positional_encoding.dropout-in-evaluation",
    clause="positional_encoding.input-untouched",
    wrong="A functional dropout is called without being told of the mode.",
    effect="Positions and words are dropped when generating, another set in each call.",
    kind="mode",
)
def drop_embedded(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    return functional.dropout(x, 0.5)


@fault(
    "positional_encoding.one-buffer-for-results",
    clause="positional_encoding.input-untouched",
    wrong="The result lies in a buffer that the next call of the same shape overwrites.",
    effect="A source kept for later holds the target's vectors.",
    kind="state",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    result = self.sound.add_rows(x, rows)
    if torch.is_grad_enabled():
        return result
    place = str((x.shape, x.dtype, x.device))
    kept: Tensor = self.memory.setdefault(place, torch.empty_like(x))
    return kept.copy_(result)
