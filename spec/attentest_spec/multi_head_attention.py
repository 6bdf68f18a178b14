"""Multi-head attention, from the formulas (section 3.2.2)."""

from attentest_spec.attention import attention
from attentest_spec.linear import linear
from attentest_spec.setting import Array, Floats, Setting, reported


@reported
def multi_head_attention(
    given: Setting, query: Floats, key: Floats, value: Floats, mask: Array | None = None
) -> Floats:
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


def split(x: Floats, heads: int) -> Floats:
    """Return x (B, L, H * E) as (B, H, L, E): head number i has the i-th slice of the columns."""
    batch, length, columns = x.shape
    return x.reshape(batch, length, heads, columns // heads).swapaxes(1, 2)


def merge(x: Floats) -> Floats:
    """Return x (B, H, L, E) as (B, L, H * E), the heads side by side."""
    batch, heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * width)


def _check_width(given: Setting, heads: int) -> None:
    width = given.sizes.d_model
    if heads < 1 or (given.choices.head_width == "d/h" and width % heads):
        raise ValueError(f"A model width of {width} cannot be divided among {heads} heads.")
