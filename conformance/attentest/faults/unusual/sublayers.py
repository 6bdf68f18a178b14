"""Unusual feed-forward networks, residual connections and an encoder layer."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.member import module
from attentest.faults.unusual.multi_head_attention import (
    NAMES,
    TransposedWeights,
    checked,
    heads_apart,
    random,
)
from attentest_spec import Place, Sizes, Table


class EinsumFeedForward(nn.Module):
    """Two einsums on weights stored as (in, out), and half of x + |x| between them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.up, self.down = random(sizes.d_model, sizes.d_ff), random(sizes.d_ff, sizes.d_model)
        self.first = nn.Parameter(torch.zeros(sizes.d_ff))
        self.last = nn.Parameter(torch.zeros(sizes.d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Return (.., D)."""
        inner = torch.einsum("...d,df->...f", x, self.up) + self.first
        return torch.einsum("...f,fd->...d", (inner + inner.abs()) / 2, self.down) + self.last


class Convolutions(nn.Module):
    """Two convolutions with a kernel of one position."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.inner = nn.Linear(sizes.d_model, sizes.d_ff)
        self.outer = nn.Linear(sizes.d_ff, sizes.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, S, D)."""
        columns = functional.conv1d(x.mT, self.inner.weight[..., None], self.inner.bias)
        return functional.conv1d(columns.relu(), self.outer.weight[..., None], self.outer.bias).mT


class ErrorFunction(nn.Module):
    """GELU by erfc, one position after another."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.inner = nn.Linear(sizes.d_model, sizes.d_ff)
        self.outer = nn.Linear(sizes.d_ff, sizes.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, S, D)."""
        rows = []
        for row in x.unbind(dim=1):
            inner = self.inner(row)
            rows.append(self.outer(inner * torch.special.erfc(-inner / math.sqrt(2)) / 2))
        return torch.stack(rows, dim=1)


class AddedNorm(nn.Module):
    """torch.add, and the norm afterwards."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(sizes.d_model)

    def forward(self, x: Tensor, sublayer: Tensor) -> Tensor:
        """Return (.., D)."""
        return self.norm.forward(torch.add(torch.matmul(x, sublayer), x))


class NormedBranch(nn.Module):
    """Pre-norm in one product: the identity is stacked on the sublayer's matrix."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(sizes.d_model)

    def forward(self, x: Tensor, sublayer: Tensor) -> Tensor:
        """Return (.., D)."""
        one = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return torch.cat((x, self.norm(x)), dim=-1) @ torch.cat((one, sublayer))


class SharedStorage(nn.Module):
    """Every parameter is a view of one flat storage, until it is moved."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads, inner = checked(sizes), sizes.heads, sizes.d_ff
        shapes = dict.fromkeys(NAMES, (width, width)) | {
            "up": (inner, width),
            "up_bias": (inner,),
            "down": (width, inner),
            **dict.fromkeys(("down_bias", "gain", "bias", "last_gain", "last_bias"), (width,)),
        }
        counts = [math.prod(shape) for shape in shapes.values()]
        flat = torch.randn(sum(counts)) / math.sqrt(width)
        for (name, shape), part in zip(shapes.items(), torch.split(flat, counts), strict=True):
            if name.endswith(("bias", "gain")):
                part.fill_(float(name.endswith("gain")))
            self.register_parameter(name, nn.Parameter(part.view(shape)))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return (B, S, D)."""
        held = dict(self.named_parameters())
        asks, keys, values = (
            heads_apart(functional.linear(x, held[name]), self.heads) for name in NAMES[:3]
        )
        mixed = functional.scaled_dot_product_attention(asks, keys, values, attn_mask=mask)
        attended = functional.linear(mixed.transpose(1, 2).flatten(2), held["output"])
        x = functional.layer_norm(x + attended, x.shape[-1:], held["gain"], held["bias"])
        inner = functional.linear(x, held["up"], held["up_bias"]).clamp(min=0)
        fed = functional.linear(inner, held["down"], held["down_bias"])
        return functional.layer_norm(x + fed, x.shape[-1:], held["last_gain"], held["last_bias"])


class ComposedLayer(nn.Module):
    """Other implementations composed into a layer, in a loop over sublayers."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attention, self.feed = TransposedWeights(sizes), EinsumFeedForward(sizes)
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.d_model) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return (B, S, D)."""
        for number, norm in enumerate(self.norms):
            inner = norm(x)
            x = x + (self.feed(inner) if number else self.attention(inner, inner, inner, mask))
        return x


class ComplexLayer(nn.Module):
    """Pairs of columns turned as complex numbers, RMS norms by lengths, the gate in one matrix."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads, inner = checked(sizes), sizes.heads, sizes.d_ff
        if width // sizes.heads % 2:
            raise ValueError(f"heads of {width // sizes.heads} columns have no pairs of columns")
        self.maps = nn.ParameterDict(
            {name: nn.Parameter(torch.randn(width, width) / math.sqrt(width)) for name in NAMES}
        )
        self.both = nn.Linear(width, 2 * inner, bias=False)
        self.back = nn.Linear(inner, width, bias=False)
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(width)) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return (B, S, D)."""
        x = x + self._attend(self._norm(x, 0), mask)
        gate, inner = self.both(self._norm(x, 1)).chunk(2, dim=-1)
        fed: Tensor = self.back(gate * torch.sigmoid(gate) * inner)
        return x + fed

    def _norm(self, x: Tensor, number: int) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        divisor = torch.hypot(length / x.shape[-1] ** 0.5, length.new_tensor(1e-3))
        scale: Tensor = self.scales[number]
        return x / divisor * scale

    def _attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = (
            heads_apart(functional.linear(x, self.maps[name]), self.heads) for name in NAMES[:3]
        )
        mixed = functional.scaled_dot_product_attention(
            _turned(query), _turned(key), value, attn_mask=mask
        )
        return functional.linear(mixed.transpose(1, 2).flatten(2), self.maps["output"])


def _turned(x: Tensor) -> Tensor:
    """Turn the pairs of neighbouring columns of x (B, H, S, E) by their positions."""
    half = x.dtype in (torch.float16, torch.bfloat16)
    wide = x.float() if half else x
    pairs = torch.view_as_complex(wide.reshape(*wide.shape[:-1], -1, 2).contiguous())
    length, count = pairs.shape[-2:]
    rates = 10000.0 ** -(torch.arange(count, dtype=wide.dtype, device=x.device) / count)
    angles = torch.arange(length, dtype=wide.dtype, device=x.device)[:, None] * rates
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


_EINSUM: Table = {
    "inner.weight": Place("up", transpose=True),
    "inner.bias": "first",
    "outer.weight": Place("down", transpose=True),
    "outer.bias": "last",
}
_LINEARS: Table = {"inner": "inner", "outer": "outer"}
_NORM: Table = {"norm.gain": "norm.weight", "norm.bias": "norm.bias"}
_SHARED: Table = {
    **{f"self_attention.{name}.weight": name for name in NAMES},
    "self_attention_norm": "",
    "feed_forward.inner.weight": "up",
    "feed_forward.inner.bias": "up_bias",
    "feed_forward.outer.weight": "down",
    "feed_forward.outer.bias": "down_bias",
    "feed_forward_norm.gain": "last_gain",
    "feed_forward_norm.bias": "last_bias",
}
_COMPOSED: Table = {
    **{
        f"self_attention.{name}.weight": Place(f"attention.w{name[0]}", transpose=True)
        for name in NAMES
    },
    "self_attention_norm.gain": "norms.0.weight",
    "self_attention_norm.bias": "norms.0.bias",
    "feed_forward.inner.weight": Place("feed.up", transpose=True),
    "feed_forward.inner.bias": "feed.first",
    "feed_forward.outer.weight": Place("feed.down", transpose=True),
    "feed_forward.outer.bias": "feed.last",
    "feed_forward_norm.gain": "norms.1.weight",
    "feed_forward_norm.bias": "norms.1.bias",
}
_COMPLEX: Table = {
    **{f"self_attention.{name}.weight": f"maps.{name}" for name in NAMES},
    "self_attention_norm.gain": "scales.0",
    "feed_forward.gate.weight": Place("both.weight", part=(0, 2)),
    "feed_forward.inner.weight": Place("both.weight", part=(1, 2)),
    "feed_forward.outer.weight": "back.weight",
    "feed_forward_norm.gain": "scales.1",
}
MEMBERS = (
    module(
        "feed_forward",
        EinsumFeedForward,
        "feed-forward network by einsum, ReLU as half of x + |x|",
        _EINSUM,
    ),
    module(
        "feed_forward",
        Convolutions,
        "feed-forward network by two convolutions over one position",
        _LINEARS,
    ),
    module(
        "feed_forward",
        ErrorFunction,
        "feed-forward network in a loop over positions, GELU by erfc",
        _LINEARS,
        activation="gelu",
    ),
    module("residual", AddedNorm, "residual connection by torch.add", _NORM),
    module(
        "residual",
        NormedBranch,
        "pre-norm residual connection in one product with identity and sublayer",
        _NORM,
        norm_placement="pre",
    ),
    module(
        "encoder_layer",
        SharedStorage,
        "encoder layer whose parameters are views of one storage",
        _SHARED,
    ),
    module(
        "encoder_layer",
        ComposedLayer,
        "pre-norm encoder layer in a loop over sublayers, weights as (in, out)",
        _COMPOSED,
        norm_placement="pre",
    ),
    module(
        "encoder_layer",
        ComplexLayer,
        "encoder layer of RMS norms, a gate, and pairs turned as complex numbers",
        _COMPLEX,
        norm_kind="rms",
        norm_placement="pre",
        attention_rotary="query-and-key",
        feed_forward_gate="gated",
        feed_forward_bias="none",
        activation="silu",
    ),
)
