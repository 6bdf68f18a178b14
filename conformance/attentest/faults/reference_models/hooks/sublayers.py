"""The hooks of the layer norm, the feed-forward network and the residual connection."""

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.modules import Node

Function = Callable[[Tensor], Tensor]


class NormHooks(Base):
    """Layer normalisation, step by step."""

    @abstractmethod
    def make_norm(self) -> Node:
        """Build a norm with a weight (gamma) of 1 and a bias of 0."""

    def layer_norm(self, module: Node, x: Tensor) -> Tensor:
        """Normalise every row of x, then apply weight (gamma) and bias."""
        wide = self.widen(x)
        centred = self.centre(wide, self.mean(wide))
        normalised = self.normalise(centred, self.variance(centred))
        return self.affine(module, normalised).to(x.dtype)

    def widen(self, x: Tensor) -> Tensor:
        """Return x in a precision that its squares fit into."""
        return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x

    @abstractmethod
    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the columns, as (.., 1)."""

    def centre(self, x: Tensor, mean: Tensor) -> Tensor:
        """Return x less its mean."""
        return x - mean

    @abstractmethod
    def variance(self, centred: Tensor) -> Tensor:
        """Return the mean of the squared deviations, as (.., 1)."""

    def epsilon(self) -> float:
        """Return what keeps the divisor above zero."""
        return self.choices.norm_epsilon

    def root(self, variance: Tensor) -> Tensor:
        """Return the square root, with a slope of 0 at 0 in place of an infinite one."""
        flat = variance == 0
        return variance.masked_fill(flat, 1.0).sqrt().masked_fill(flat, 0.0)

    @abstractmethod
    def normalise(self, centred: Tensor, variance: Tensor) -> Tensor:
        """Return the deviations divided by their size."""

    @abstractmethod
    def affine(self, module: Node, normalised: Tensor) -> Tensor:
        """Multiply by the weight (gamma) and add the bias."""


class RmsHooks(Base):
    """RMS normalisation, step by step."""

    def make_rms_norm(self) -> Node:
        """Build an RMS norm that multiplies by 1."""
        self.check_sizes("d_model")
        return self.make_norm_of_rows(self.sizes.d_model)

    @abstractmethod
    def make_norm_of_rows(self, width: int) -> Node:
        """Build an RMS norm of rows of `width` columns."""

    def rms_norm(self, module: Node, x: Tensor) -> Tensor:
        """Divide every row of x by its root mean square, then apply weight and bias."""
        wide = self.widen_row(x)
        rows = self.divide_row(wide, self.rms_divisor(self.mean_square(wide), x.shape[-1]))
        return self.weigh_row(module, rows, x.dtype)

    def widen_row(self, x: Tensor) -> Tensor:
        """Return x in the precision that is chosen, in which its squares fit."""
        half = x.dtype in (torch.float16, torch.bfloat16)
        return x.float() if half or self.choices.rms_arithmetic == "float32" else x

    @abstractmethod
    def mean_square(self, x: Tensor) -> Tensor:
        """Return the mean of the squares over the columns, as (.., 1)."""

    def rms_epsilon(self) -> float:
        """Return what keeps the divisor above zero."""
        return self.choices.rms_epsilon

    def rms_root(self, square: Tensor) -> Tensor:
        """Return the square root, with a slope of 0 at 0 in place of an infinite one."""
        flat = square == 0
        return square.masked_fill(flat, 1.0).sqrt().masked_fill(flat, 0.0)

    def rms_divisor(self, square: Tensor, width: int) -> Tensor:
        """Return what a row of `width` is divided by, with epsilon where it is declared."""
        match self.choices.rms_epsilon_place:
            case "inside-root":
                return torch.sqrt(square + self.rms_epsilon())
            case "added-to-rms":
                return self.rms_root(square) + self.rms_epsilon()
            case "floor-of-rms":
                return self.rms_root(square).clamp(min=self.rms_epsilon())
            case _:
                return self.rms_root(square).clamp(min=self.rms_epsilon() / width**0.5)

    @abstractmethod
    def divide_row(self, x: Tensor, divisor: Tensor) -> Tensor:
        """Return the rows divided by their divisor (.., 1)."""

    @abstractmethod
    def row_weight(self, module: Node) -> Tensor | None:
        """Return what a row is multiplied by, None for nothing."""

    @abstractmethod
    def row_bias(self, module: Node) -> Tensor | None:
        """Return what is added to a row, None for nothing."""

    def weigh_row(self, module: Node, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the rows in `dtype`, rounded before or after the weight as declared."""
        early = self.choices.rms_cast == "before-weight" or rows.dtype == dtype
        given = rows.to(dtype) if early else rows
        weight, bias = self.row_weight(module), self.row_bias(module)
        wide = torch.promote_types(given.dtype, rows.dtype)
        scaled = given if weight is None else given * weight.to(wide)
        narrow = scaled.to(dtype)
        return narrow if bias is None else narrow + bias.to(dtype)


class FeedForwardHooks(Base):
    """Two linear maps with an activation between."""

    def make_feed_forward(self) -> Node:
        """Build both linear maps."""
        self.check_sizes("d_model", "d_ff")
        width, inner = self.sizes.d_model, self.sizes.d_ff
        bias = self.choices.feed_forward_bias == "present"
        return Node(
            self,
            "feed_forward",
            gate=self.make_linear(width, inner, bias=bias) if self.has_gate() else None,
            inner=self.make_linear(width, inner, bias=bias),
            outer=self.make_linear(inner, width, bias=bias),
        )

    def has_gate(self) -> bool:
        """Say whether the hidden layer is multiplied by a gate."""
        return self.choices.feed_forward_gate == "gated"

    def feed_forward(self, module: Node, x: Tensor) -> Tensor:
        """Return outer(dropout(activation(inner(x)))), or that of a gated hidden layer."""
        inner = self.expand(module, x)
        hidden = (
            self.join_gate(self.open_gate(module, x), inner)
            if self.has_gate()
            else self.activation(inner)
        )
        return self.contract(module, self.drop_inner(module, hidden))

    def open_gate(self, module: Node, x: Tensor) -> Tensor:
        """Apply the map of the gate, from D to F columns, without its activation."""
        return self.linear(module.gate, x)

    def join_gate(self, gate: Tensor, inner: Tensor) -> Tensor:
        """Multiply the hidden layer by the activation of the gate."""
        return self.activation(gate) * inner

    def expand(self, module: Node, x: Tensor) -> Tensor:
        """Apply the first linear map, from D to F columns."""
        return self.linear(module.inner, x)

    @abstractmethod
    def activation(self, x: Tensor) -> Tensor:
        """Apply the chosen activation."""

    def drop_inner(self, module: Node, x: Tensor) -> Tensor:
        """Apply dropout between activation and second map."""
        return self.dropout(module, x)

    def contract(self, module: Node, x: Tensor) -> Tensor:
        """Apply the second linear map, from F to D columns."""
        return self.linear(module.outer, x)


class ResidualHooks(NormHooks, RmsHooks):
    """A sublayer, the path around it, and the norm before or after."""

    def make_chosen_norm(self) -> Node:
        """Build a norm of the chosen kind."""
        return self.make_rms_norm() if self.choices.norm_kind == "rms" else self.make_norm()

    def make_residual(self) -> Node:
        """Build a residual connection with its norm."""
        return Node(self, "residual", norm=self.make_chosen_norm())

    def residual(self, module: Node, norm: Node, x: Tensor, function: Function) -> Tensor:
        """Wrap `function`; `module` gives the mode of its dropout."""
        branch = self.drop_branch(module, function(self.norm_before(norm, x)))
        return self.norm_after(norm, self.add_branch(x, branch))

    def norm_before(self, norm: Node, x: Tensor) -> Tensor:
        """Return what the sublayer is given: the norm of x under pre-norm."""
        return norm(x) if self.choices.norm_placement == "pre" else x

    def drop_branch(self, module: Node, branch: Tensor) -> Tensor:
        """Apply dropout to the sublayer's output, before the sum."""
        return self.dropout(module, branch)

    def add_branch(self, x: Tensor, branch: Tensor) -> Tensor:
        """Return the sum of what went around the sublayer and what went through it."""
        return x + branch

    def norm_after(self, norm: Node, x: Tensor) -> Tensor:
        """Return what leaves the connection: the norm of the sum under post-norm."""
        return norm(x) if self.choices.norm_placement == "post" else x
