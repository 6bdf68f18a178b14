"""The arguments of x-transformers for the sizes of the spec."""

from typing import Any

from attentest_spec import Sizes


def attention(sizes: Sizes) -> dict[str, Any]:
    """Return the arguments of an attention.

    Raises ValueError for a width that the heads do not divide: the library accepts any.
    """
    if min(sizes.d_model, sizes.heads) < 1 or sizes.d_model % sizes.heads:
        raise ValueError(f"A width of {sizes.d_model} cannot be shared by {sizes.heads} heads.")
    width = sizes.d_model // sizes.heads
    return {"dim_head": width, "dropout": sizes.dropout, "project_out": True}


def feed_forward(sizes: Sizes) -> dict[str, Any]:
    """Return the arguments of a feed-forward network: its width is the product, rounded down."""
    return {"mult": (sizes.d_ff + 0.5) / sizes.d_model, "dropout": sizes.dropout}


def layers(sizes: Sizes) -> dict[str, Any]:
    """Return the arguments of a stack of layers, with dropout at every site."""
    table = {"heads": sizes.heads, "depth": sizes.layers}
    for kind, one in (("attn", attention(sizes)), ("ff", feed_forward(sizes))):
        one["sublayer_dropout"] = sizes.dropout
        table |= {f"{kind}_{name}": value for name, value in one.items()}
    return table
