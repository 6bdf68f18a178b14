"""Unusual first numbers of whole models, in the reference model `plain`."""

import numpy as np
import torch
from torch import Tensor, nn

from attentest.faults.reference_models import DECLARED, Node, reference_backend
from attentest.faults.reference_models.plain import Plain
from attentest.faults.unusual.member import member
from attentest_spec import Limits
from attentest_spec.choices import Value
from attentest_spec.torch import TorchBackend


class Orthogonal(Plain):
    """Every matrix is orthogonal, as far as its shape lets it be."""

    def initialise(self, weight: Tensor) -> None:
        """Draw an orthogonal matrix."""
        nn.init.orthogonal_(weight)


class ZeroBranches(Plain):
    """The last matrix of every sublayer is zero: each layer begins as the identity."""

    def initialise_model(self, model: Node) -> None:
        """Set the matrices to zero."""
        super().initialise_model(model)
        for name, values in model.named_parameters():
            if name.endswith(("output.weight", "outer.weight")):
                nn.init.zeros_(values)


class Truncated(Plain):
    """Normal numbers that are cut at two deviations, and a deviation of one half."""

    def initialise(self, weight: Tensor) -> None:
        """Draw truncated normal numbers."""
        nn.init.trunc_normal_(weight, std=0.5, a=-1.0, b=1.0)


class OfNumPy(Plain):
    """Xavier's numbers from a generator of NumPy, which torch's seed has no effect on."""

    def initialise_model(self, model: Node) -> None:
        """Draw every matrix with one generator, which begins where NumPy's own one is."""
        rng = np.random.default_rng(np.random.randint(2**31))
        for values in model.parameters():
            if values.dim() > 1:
                bound = (6.0 / sum(values.shape)) ** 0.5
                drawn = rng.uniform(-bound, bound, size=values.shape)
                values.data.copy_(torch.from_numpy(drawn))


def _model(name: str, model: type[Plain], title: str, **choices: Value) -> TorchBackend:
    declared = {**DECLARED, "output": "logits", **choices}
    recipe = reference_backend(model, declared).recipes["model"]
    return member(name, title, {"model": recipe}, declared, Limits())


MEMBERS = (
    _model("orthogonal", Orthogonal, "orthogonal matrices, tied vocabularies"),
    _model("zero-branches", ZeroBranches, "every layer begins as the identity", tying="none"),
    _model("truncated", Truncated, "normal numbers that are cut at two deviations", tying="none"),
    _model(
        "numbers-of-numpy",
        OfNumPy,
        "first numbers from a generator of NumPy",
        tying="none",
        initialisation="xavier-uniform",
        generator_initialisation="as-matrices",
        embedding_initialisation="as-matrices",
        bias_initialisation="zeros",
    ),
)
