"""The backend of Keras: its own layers, and the names of their parameters."""

from typing import Any

from torch import Tensor

from attentest_keras import training
from attentest_keras.library import keras
from attentest_spec import Limits, Place, Sizes, Table
from attentest_spec.torch import Recipe, TorchBackend, TorchPart

PROJECTIONS = ("query", "key", "value")
OWN = "_torch_params.mine"
"""The list in which Keras holds the weights of a layer for torch, and the layers' name here."""

# Kernels are stored input first, then by head: (D, H, E), and (H, E, D) for the output.
HEADS: Table = {
    **{
        f"{name}.weight": Place(f"{OWN}/{name}/kernel", layout="d h e -> (h e) d")
        for name in PROJECTIONS
    },
    **{f"{name}.bias": Place(f"{OWN}/{name}/bias", layout="h e -> (h e)") for name in PROJECTIONS},
    "output.weight": Place(f"{OWN}/attention_output/kernel", layout="h e d -> d (h e)"),
    "output.bias": f"{OWN}/attention_output/bias",
}


class KerasBackend(TorchBackend):
    """A backend of torch modules that compute in the precision that they were built for."""

    def build(
        self, component: str, sizes: Sizes, *, precision: str = "float64", device: str = "cpu"
    ) -> TorchPart:
        """Build under the policy of `precision`; see :meth:`attentest_spec.Backend.build`."""
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(precision)
        try:
            with keras.device(device):
                return super().build(component, sizes, precision=precision, device=device)
        finally:
            keras.config.set_dtype_policy(before)


def _heads(sizes: Sizes) -> Any:
    # Keras takes the width of a head, so the division is this adapter's.
    if sizes.d_model % sizes.heads:
        raise ValueError(f"A width of {sizes.d_model} cannot be shared by {sizes.heads} heads.")
    layer = keras.layers.MultiHeadAttention(
        sizes.heads, sizes.d_model // sizes.heads, dropout=sizes.dropout, name="mine"
    )
    layer.build(*[(None, None, sizes.d_model)] * 2)
    return layer


def _norm(sizes: Sizes) -> Any:
    layer = keras.layers.LayerNormalization(name="mine")
    layer.build((None, None, sizes.d_model))
    return layer


def _embedding(sizes: Sizes) -> Any:
    layer = keras.layers.Embedding(sizes.source_vocabulary, sizes.d_model, name="mine")
    layer.build()
    return layer


def _call(layer: Any, x: Tensor) -> Any:
    with keras.device(x.device.type):
        return layer(x)


def _attend(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
    with keras.device(query.device.type):
        # Torch's mode has no effect on Keras, so it is passed at every call.
        return layer(query, value, key, attention_mask=mask, training=layer.training)


def _dot_product(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Any, None]:
    """Call the operation, which has heads after positions and returns no weights."""
    turned = [one.swapaxes(1, 2) for one in (query, key, value)]
    with keras.device(query.device.type):
        return keras.ops.dot_product_attention(*turned, mask=mask).swapaxes(1, 2), None


backend = KerasBackend(
    name="keras",
    title="Keras 3 on its torch backend: layers, losses, schedules and optimisers",
    choices={
        "norm_epsilon_place": "inside-root",
        "norm_variance": "biased",
        "norm_epsilon": 1e-3,
        "embedding_scale": "none",
        "head_width": "d/h",
        "mask_fill": "exact",
        "fully_masked_row": "unspecified",
        "projection_bias": "present",
        **training.CHOICES,
    },
    limits=Limits(precisions=("float32", "bfloat16", "float16")),
    recipes={
        "attention": Recipe(build=lambda sizes: _dot_product),
        "multi_head_attention": Recipe(_heads, _attend, parameters=HEADS),
        "embedding": Recipe(_embedding, _call, parameters={"weight": f"{OWN}/embeddings"}),
        "layer_norm": Recipe(
            _norm, _call, parameters={"gain": f"{OWN}/gamma", "bias": f"{OWN}/beta"}
        ),
        **training.RECIPES,
    },
)
