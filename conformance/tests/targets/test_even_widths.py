"""Encoders that are built at an even width alone, as a table of sines in them needs it."""

import pytest
import torch
from proof import share
from torch import Tensor, nn

import attentest
from attentest.targets.adapt import Unclear

FORMULA = "encoder.formula"


class Encoder(nn.Module):
    """Refuses an odd width."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, n_layers: int) -> None:
        super().__init__()
        assert d_model % 2 == 0
        layers = [
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, 0.0, batch_first=True)
            for _ in range(n_layers)
        ]
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class WithPositions(nn.Module):
    """Adds a table of positions to its input, which is no token."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, n_layers: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.0)
        self.encoder = Encoder(d_model, n_heads, d_ff, n_layers)
        speeds = 10_000 ** -(torch.arange(0, d_model, 2) / d_model)
        angles = torch.arange(64)[:, None] * speeds
        self.register_buffer("table", torch.cat([angles.sin(), angles.cos()], dim=-1))

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(self.dropout(x + self.table[: x.shape[1]]))  # type: ignore[no-any-return]


class OfTokens(nn.Module):
    """Is built at an odd width, at which its table has a column more, and raises when called."""

    around = 0.0

    def __init__(
        self, vocab_size: int, d_model: int, n_heads: int, d_ff: int, n_layers: int
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        layers = [
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, 0.0, batch_first=True)
            for _ in range(n_layers)
        ]
        self.layers = nn.ModuleList(layers)
        speeds = 10_000 ** -(torch.arange(0, d_model, 2) / d_model)
        angles = torch.arange(64)[:, None] * speeds
        self.register_buffer("table", torch.cat([angles.sin(), angles.cos()], dim=-1))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.table[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x) + self.around * x
        return x


class OfTokensAround(OfTokens):
    """Wrong: adds the input of each layer to its output."""

    around = 1.0


class Skipping(Encoder):
    """Wrong: leaves out its first layer."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in list(self.layers)[1:]:
            x = layer(x)
        return x


@pytest.mark.proof
@share(4)
@pytest.mark.parametrize(
    ("one", "status"),
    [
        (Encoder, "pass"),
        (Skipping, "violation"),
        (OfTokens, "pass"),
        (OfTokensAround, "violation"),
    ],
)
def test_an_encoder_of_even_widths_is_judged_at_these(one: type, status: str) -> None:
    read = attentest.adapted(one, "encoder", anyway=True)
    assert not read.limits.odd_width
    report = attentest.check(read, clauses=[FORMULA])
    assert report[FORMULA].status == status, str(report)


@pytest.mark.proof
def test_an_encoder_that_adds_positions_to_its_input_is_asked_about() -> None:
    with pytest.raises(Unclear, match=r"WithPositions .* adds positions to its input"):
        attentest.adapted(WithPositions, "encoder")
