"""Unusual implementations of layers that are made of parts of later models."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.member import module
from attentest.faults.unusual.multi_head_attention import NAMES, checked
from attentest_spec import Place, Sizes, Table


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
        return x + self.back(gate * torch.sigmoid(gate) * inner)

    def _norm(self, x: Tensor, number: int) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        divisor = torch.hypot(length / x.shape[-1] ** 0.5, length.new_tensor(1e-3))
        return x / divisor * self.scales[number]

    def _attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = (self._heads(x @ self.maps[name].mT) for name in NAMES[:3])
        mixed = functional.scaled_dot_product_attention(
            _turned(query), _turned(key), value, attn_mask=mask
        )
        return mixed.transpose(1, 2).flatten(2) @ self.maps["output"].mT

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def _turned(x: Tensor) -> Tensor:
    """Turn the pairs of neighbouring columns of x (B, H, S, E) by their positions."""
    half = x.dtype in (torch.float16, torch.bfloat16)
    wide = x.float() if half else x
    pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous())
    length, count = pairs.shape[-2:]
    rates = 10000.0 ** -(torch.arange(count, dtype=wide.dtype, device=x.device) / count)
    angles = torch.arange(length, dtype=wide.dtype, device=x.device)[:, None] * rates
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


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
