"""The hooks of initialisation: the first numbers of a model where a distribution is declared."""

from math import sqrt

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.modules import Node
from attentest_spec import Setting
from attentest_spec.initialisation import (
    EMBEDDINGS,
    Distribution,
    distribution,
    ends_sublayer,
    fans,
    residual_factor,
)
from attentest_spec.mapping import locate
from attentest_spec.parameters import shapes


class InitialHooks(Base):
    """Every parameter with a declared distribution is drawn again when the model is complete."""

    def initialise_model(self, model: Node) -> None:
        """Draw the parameters of a model, part by part in the order of their names."""
        own = dict(model.named_parameters(remove_duplicate=False))
        table = self.tables["model"]
        with torch.no_grad():
            for name, shape in shapes("model", self.sizes, self.choices).items():
                values = self.first_values(name, shape)
                if values is not None:
                    locate(name, table).write(own, values, self.sizes.heads)

    def setting(self) -> Setting:
        """Return the sizes and the choices."""
        return Setting(self.sizes, self.choices)

    def first_values(self, name: str, shape: tuple[int, ...]) -> Tensor | None:
        """Return the first numbers of a parameter, None for those that it was built with."""
        declared = distribution(self.setting(), name, shape)
        if declared is None:
            return None
        if name in EMBEDDINGS:
            return self.first_embedding(name, shape, declared)
        if name.endswith("bias"):
            return self.first_bias(name, shape, declared)
        return self.first_matrix(name, shape, declared)

    def first_matrix(self, name: str, shape: tuple[int, ...], declared: Distribution) -> Tensor:
        """Return the first numbers of the matrix of a linear map."""
        factor = self.residual_scale(name)
        whole = residual_factor(self.setting()) if ends_sublayer(name) else 1.0
        plain = self.matrix_deviation(name, shape, declared.deviation / whole)
        return self.draw_first(declared.kind, shape, plain * factor)

    def residual_scale(self, name: str) -> float:
        """Return the factor of a matrix before a residual sum, 1 for any other."""
        return residual_factor(self.setting()) if ends_sublayer(name) else 1.0

    def matrix_deviation(self, name: str, shape: tuple[int, ...], declared: float) -> float:
        """Return the deviation of a matrix (out, in), that of its fans where they count."""
        inputs, outputs = self.fans_of(name, shape)
        right = fans(self.setting(), name, shape)
        option = self.choices.initialisation
        if name == "generator.weight" and self.choices.generator_initialisation != "as-matrices":
            option = self.choices.generator_initialisation
        if option.startswith("xavier"):
            return declared * sqrt(sum(right) / (inputs + outputs))
        return declared * sqrt(right[0] / inputs) if option == "torch-linear" else declared

    def fans_of(self, name: str, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return the numbers of inputs and outputs that a matrix is drawn by."""
        return fans(self.setting(), name, shape)

    def first_embedding(self, name: str, shape: tuple[int, ...], declared: Distribution) -> Tensor:
        """Return the first numbers of an embedding."""
        values = self.draw_first(declared.kind, shape, declared.deviation)
        pad = self.sizes.source_pad if name.startswith("source") else self.sizes.target_pad
        return self.first_pad_row(values, pad)

    def first_pad_row(self, values: Tensor, pad: int) -> Tensor:
        """Set the row of the pad id to zero where that is declared."""
        if self.choices.pad_row_initialisation == "zero":
            values[pad] = 0.0
        return values

    def first_bias(self, name: str, shape: tuple[int, ...], declared: Distribution) -> Tensor:
        """Return the first numbers of a bias."""
        return self.draw_first(declared.kind, shape, declared.deviation)

    def draw_first(self, kind: str, shape: tuple[int, ...], deviation: float) -> Tensor:
        """Draw numbers of a kind and a deviation."""
        if kind == "uniform":
            return (2 * torch.rand(shape, dtype=torch.float64) - 1) * (deviation * 3**0.5)
        return torch.randn(shape, dtype=torch.float64) * deviation
