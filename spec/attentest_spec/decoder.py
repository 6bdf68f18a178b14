"""The decoder layer and the decoder, from sections 3.1 and 3.2.3."""

from dataclasses import replace
from functools import partial
from typing import Annotated

from attentest_spec.encoder import self_attention, stack
from attentest_spec.feed_forward import feed_forward
from attentest_spec.multi_head_attention import multi_head_attention
from attentest_spec.order import ordered, unordered
from attentest_spec.residual import wrap
from attentest_spec.setting import Floats, Mask, Setting, reported


@reported
def decoder_layer(
    given: Setting,
    x: Annotated[Floats, "B T D"],
    memory: Annotated[Floats, "B S D"],
    source_mask: Annotated[Mask, "#B #H #T #S"] | None = None,
    target_mask: Annotated[Mask, "#B #H #T #T"] | None = None,
) -> Annotated[Floats, "B T D"]:
    """Apply self-attention, attention to the memory, then the feed-forward network.

    x (B, T, D), memory (B, S, D), source_mask broadcastable to (B, H, T, S), target_mask to
    (B, H, T, T), True = may be attended; returns (B, T, D). Each of the three is inside a
    residual connection; the memory is not normalised. Source: section 3.1, "Decoder".
    """
    attend = partial(self_attention, given, mask=target_mask)
    attended = wrap(given.under("self_attention_norm"), x, attend)
    read = partial(cross_attention, given, memory=memory, mask=source_mask)
    informed = wrap(given.under("cross_attention_norm"), attended, read)
    feed = partial(feed_forward, given.under("feed_forward"))
    return wrap(given.under("feed_forward_norm"), informed, feed)


@reported
def decoder(
    given: Setting,
    x: Annotated[Floats, "B T D"],
    memory: Annotated[Floats, "B S D"],
    source_mask: Annotated[Mask, "#B #H #T #S"] | None = None,
    target_mask: Annotated[Mask, "#B #H #T #T"] | None = None,
) -> Annotated[Floats, "B T D"]:
    """Apply N decoder layers in turn, all to one memory, and the final norm where there is one.

    x (B, T, D) embedded, memory (B, S, D), source_mask broadcastable to (B, H, T, S), target_mask
    to (B, H, T, T); returns (B, T, D). Source: section 3.1, "Decoder".
    """
    return stack(
        given,
        x,
        lambda layer, inner: decoder_layer(layer, inner, memory, source_mask, target_mask),
    )


def cross_attention(
    given: Setting,
    x: Annotated[Floats, "B T D"],
    memory: Annotated[Floats, "B S D"],
    mask: Annotated[Mask, "#B #H #T #S"] | None = None,
) -> Annotated[Floats, "B T D"]:
    """Return multi-head attention of queries from x to keys and values from the memory.

    x (B, T, D), memory (B, S, D) and a mask broadcastable to (B, H, T, S) give (B, T, D).
    """
    inner = given.under("cross_attention")
    if ordered(given.choices):  # the order of the sequence itself is not that of a memory
        inner = replace(inner, choices=unordered(given.choices))
    return multi_head_attention(inner, x, memory, memory, mask)
