"""Encoders that return the states behind all of their layers in a list."""

import pytest
from proof import share
from torch import Tensor, nn

import attentest

FORMULA = "encoder.formula"


class Encoder(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, n_layers: int) -> None:
        super().__init__()
        layers = [
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, 0.0, batch_first=True)
            for _ in range(n_layers)
        ]
        self.layers = nn.ModuleList(layers)

    def used(self) -> list[nn.Module]:
        return list(self.layers)

    def forward(self, x: Tensor) -> list[Tensor]:
        states = []
        for layer in self.used():
            x = layer(x)
            states.append(x)
        return states


class OneShort(Encoder):
    """Wrong: applies its last layer never, and its first one twice."""

    def used(self) -> list[nn.Module]:
        return [self.layers[0], *list(self.layers)[:-1]]


@share(2)
@pytest.mark.parametrize(("one", "status"), [(Encoder, "pass"), (OneShort, "violation")])
def test_the_last_of_a_list_of_states_is_the_output(one: type, status: str) -> None:
    read = attentest.adapted(one, "encoder", anyway=True)
    said = "\n".join(read.understood)  # type: ignore[attr-defined]
    assert "the output as the last of a list" in said
    report = attentest.check(read, clauses=[FORMULA])
    assert report[FORMULA].status == status, str(report)
