"""The formulas of encoder and decoder, layer and stack."""

from collections.abc import Callable

from attentest.analysis.lines.formula import Formula, Step
from attentest.analysis.lines.formulas.feed_forward import feed_forward, wrapped
from attentest.analysis.lines.formulas.multi_head_attention import multi_head_attention
from attentest.analysis.lines.formulas.norm import norm


def encoder_layer(formula: Formula, part: str, x: Step, mask: Step | None) -> Step:
    """Add self-attention and the feed-forward network, each with a residual connection."""
    inner = f"{part}." if part else ""

    def attend(x: Step) -> Step:
        name = f"{inner}self_attention"
        return multi_head_attention(formula, name, x, x, x, mask)

    def feed(x: Step) -> Step:
        return feed_forward(formula, f"{inner}feed_forward", x)

    attended = wrapped(formula, f"{inner}self_attention_norm", x, attend, part)
    return wrapped(formula, f"{inner}feed_forward_norm", attended, feed, part)


def decoder_layer(
    formula: Formula,
    part: str,
    x: Step,
    memory: Step,
    source_mask: Step | None,
    own_mask: Step | None,
) -> Step:
    """Add self-attention, attention to the memory, and the feed-forward network."""
    inner = f"{part}." if part else ""

    def attend(x: Step) -> Step:
        name = f"{inner}self_attention"
        return multi_head_attention(formula, name, x, x, x, own_mask)

    def read(x: Step) -> Step:
        name = f"{inner}cross_attention"
        return multi_head_attention(formula, name, x, memory, memory, source_mask, to_itself=False)

    def feed(x: Step) -> Step:
        return feed_forward(formula, f"{inner}feed_forward", x)

    for own, sublayer in (
        ("self_attention_norm", attend),
        ("cross_attention_norm", read),
        ("feed_forward_norm", feed),
    ):
        x = wrapped(formula, f"{inner}{own}", x, sublayer, part)
    return x


def stack(formula: Formula, part: str, x: Step, layer: Callable[[str, Step], Step]) -> Step:
    """Add the layers in turn, and the final norm where there is one."""
    inner = f"{part}." if part else ""
    for number in range(formula.sizes.layers):
        x = layer(f"{inner}layers.{number}", x)
    if formula.choices.final_norm != "present":
        return x
    return norm(formula, f"{inner}norm", x)


def encoder(formula: Formula, part: str, x: Step, mask: Step | None) -> Step:
    """Add the encoder layers."""
    return stack(formula, part, x, lambda name, x: encoder_layer(formula, name, x, mask))


def decoder(
    formula: Formula, part: str, x: Step, memory: Step, source: Step | None, own: Step | None
) -> Step:
    """Add the decoder layers."""

    def layer(name: str, x: Step) -> Step:
        return decoder_layer(formula, name, x, memory, source, own)

    return stack(formula, part, x, layer)
