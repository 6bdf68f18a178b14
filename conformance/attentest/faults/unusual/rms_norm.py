"""Unusual implementations of the RMS norm."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.member import module
from attentest_spec import Limits, Place, Sizes, Table

WEIGHT: Table = {"gain": "weight"}


class Scaled(nn.Module):
    """The weight; subclasses normalise."""

    start = 1.0

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((sizes.d_model,), self.start))


class LibraryRms(Scaled):
    """The function of torch."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        return functional.rms_norm(x, x.shape[-1:], self.weight, eps=1e-5)


class CastFirstRms(Scaled):
    """Always in float32; rounded before the weight multiplies."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        wide = x.to(torch.float32)
        rows = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * rows.to(x.dtype)


class OffsetRms(Scaled):
    """Always in float32; multiplied by 1 + weight there, and rounded once."""

    start = 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        wide = x.float()
        rows = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return (rows * (1.0 + self.weight.float())).type_as(x)


class UnitLengthRms(nn.Module):
    """Rows of length sqrt(d) by the library's normalisation; the stored weight lacks 1."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(sizes.d_model))
        self.scale = sizes.d_model**0.5

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        rows: Tensor = functional.normalize(x, dim=-1) * self.scale * (self.gamma + 1)
        return rows


class BareRms(nn.Module):
    """No parameters: the next matrix holds the scale."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        return functional.rms_norm(x, (x.size(-1),), eps=1e-6)


class NormOfColumns(Scaled):
    """The length of a row, divided by the root of the width, plus epsilon; columns come first."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.offset = nn.Parameter(torch.zeros(sizes.d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised; the norm of a library has a slope of 0 at 0."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32)).movedim(-1, 0)
        size = torch.linalg.vector_norm(wide, dim=0) / wide.shape[0] ** 0.5
        rows = (wide / (size + 1e-8)).movedim(0, -1)
        return (torch.addcmul(self.offset.to(rows), rows, self.weight.to(rows))).to(x.dtype)


class LeastRoot(Scaled):
    """The root of the mean of squares, by the length of the row, is at least epsilon."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        size = torch.linalg.vector_norm(wide, dim=-1, keepdim=True) * x.size(-1) ** -0.5
        rows: Tensor = wide / size.clamp(min=1e-8) * self.weight.to(wide)
        return rows.to(x.dtype)


class RowByRow(Scaled):
    """One row after the other, by a product of the row with itself."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        rows = [row / (row @ row / len(row) + 1e-5).sqrt() for row in wide.flatten(0, -2)]
        return (torch.stack(rows).view(x.shape) * self.weight).to(x.dtype)


MEMBERS = (
    module("rms_norm", LibraryRms, "RMS norm by torch's own function", WEIGHT, rms_epsilon=1e-5),
    module(
        "rms_norm",
        CastFirstRms,
        "RMS norm in float32 whatever the model, rounded before the weight",
        WEIGHT,
        rms_arithmetic="float32",
        rms_cast="before-weight",
    ),
    module(
        "rms_norm",
        OffsetRms,
        "RMS norm in float32 with 1 + weight, rounded once",
        WEIGHT,
        rms_weight="one-plus-weight",
        rms_arithmetic="float32",
        rms_cast="after-weight",
    ),
    module(
        "rms_norm",
        UnitLengthRms,
        "RMS norm as a row of unit length, with a stored weight that lacks 1",
        {"gain": Place("gamma", plus=1.0)},
        Limits(dropout=False, precisions=("float64", "float32", "bfloat16")),
        rms_epsilon=1e-12,
        rms_epsilon_place="floor-of-length",
    ),
    module("rms_norm", BareRms, "RMS norm without a weight", rms_weight="none"),
    module(
        "rms_norm",
        NormOfColumns,
        "RMS norm by the library's length of a row, with epsilon added to it and a bias",
        {"gain": "weight", "bias": "offset"},
        rms_epsilon=1e-8,
        rms_epsilon_place="added-to-rms",
        rms_bias="present",
    ),
    module(
        "rms_norm",
        LeastRoot,
        "RMS norm by the length of a row, with epsilon as the least root",
        WEIGHT,
        rms_epsilon=1e-8,
        rms_epsilon_place="floor-of-rms",
    ),
    module("rms_norm", RowByRow, "RMS norm of one row after the other", WEIGHT, rms_epsilon=1e-5),
)
