"""The encoder layer and the encoder, from section 3.1."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from attentest_spec.feed_forward import feed_forward
from attentest_spec.multi_head_attention import multi_head_attention
from attentest_spec.norm import norm
from attentest_spec.residual import wrap
from attentest_spec.setting import Floats, Mask, Setting, reported


@reported
def encoder_layer(
    given: Setting,
    x: Annotated[Floats, "B S D"],
    mask: Annotated[Mask, "#B #H #S #S"] | None = None,
) -> Annotated[Floats, "B S D"]:
    """Apply self-attention, then the feed-forward network, each inside a residual connection.

    x (B, S, D), mask broadcastable to (B, H, S, S), True = may be attended; returns (B, S, D).
    Source: section 3.1, "Encoder".
    """
    attend = partial(self_attention, given, mask=mask)
    attended = wrap(given.under("self_attention_norm"), x, attend)
    feed = partial(feed_forward, given.under("feed_forward"))
    return wrap(given.under("feed_forward_norm"), attended, feed)


@reported
def encoder(
    given: Setting,
    x: Annotated[Floats, "B S D"],
    mask: Annotated[Mask, "#B #H #S #S"] | None = None,
) -> Annotated[Floats, "B S D"]:
    """Apply N encoder layers in turn, and the final norm where the choice says so.

    x (B, S, D) embedded, mask broadcastable to (B, H, S, S); returns the memory (B, S, D).
    Source: section 3.1, "Encoder".
    """
    return stack(given, x, lambda layer, inner: encoder_layer(layer, inner, mask))


def self_attention(
    given: Setting,
    x: Annotated[Floats, "B L D"],
    mask: Annotated[Mask, "#B #H #L #L"] | None = None,
) -> Annotated[Floats, "B L D"]:
    """Return multi-head attention with query, key and value all taken from x.

    x (B, L, D) and a mask broadcastable to (B, H, L, L) give (B, L, D).
    """
    return multi_head_attention(given.under("self_attention"), x, x, x, mask)


def stack(
    given: Setting, x: Annotated[Floats, "B L D"], layer: Callable[[Setting, Floats], Floats]
) -> Annotated[Floats, "B L D"]:
    """Feed x through `layers.0` to `layers.N-1` in turn, then through `norm` (choice `final_norm`).

    x (B, L, D) gives (B, L, D). `layer` takes the setting of one layer and that layer's input.
    """
    for number in range(given.sizes.layers):
        x = layer(given.under(f"layers.{number}"), x)
    return norm(given.under("norm"), x) if given.choices.final_norm == "present" else x
