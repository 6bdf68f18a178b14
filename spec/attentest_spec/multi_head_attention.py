"""Multi-head attention, from the formulas (section 3.2.2)."""

from typing import Annotated

from attentest_spec.attention import attention
from attentest_spec.linear import linear
from attentest_spec.setting import Floats, Mask, Setting, reported


@reported
def multi_head_attention(
    given: Setting,
    query: Annotated[Floats, "B Q D"],
    key: Annotated[Floats, "B K D"],
    value: Annotated[Floats, "B K D"],
    mask: Annotated[Mask, "#B #H #Q #K"] | None = None,
) -> Annotated[Floats, "B Q D"]:
    """Compute Concat(head_1, .., head_h) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    Query (B, Q, D), key and value (B, K, D), mask broadcastable to (B, H, Q, K), True = may be
    attended; returns (B, Q, D). Raises ValueError where the choice `head_width` is "d/h" and the
    number of heads does not divide D. Source: section 3.2.2.
    """
    heads = given.sizes.heads
    _check_width(given, heads)
    context, _ = attention(
        given,
        split(linear(given, "query", query), heads),
        split(linear(given, "key", key), heads),
        split(linear(given, "value", value), heads),
        mask,
    )
    return linear(given, "output", merge(context))


def split(x: Annotated[Floats, "B L C"], heads: int) -> Annotated[Floats, "B H L C//H"]:
    """Return the heads of x: head number i has the i-th slice of the columns.

    x (B, L, C) gives (B, H, L, C // H).
    """
    batch, length, columns = x.shape
    return x.reshape(batch, length, heads, columns // heads).swapaxes(1, 2)


def merge(x: Annotated[Floats, "B H L E"]) -> Annotated[Floats, "B L H*E"]:
    """Return the heads of x (B, H, L, E) side by side, as (B, L, H * E)."""
    batch, heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * width)


def _check_width(given: Setting, heads: int) -> None:
    width = given.sizes.d_model
    if heads < 1 or (given.choices.head_width == "d/h" and width % heads):
        raise ValueError(f"A model width of {width} cannot be divided among {heads} heads.")
