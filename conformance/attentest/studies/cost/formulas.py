"""Number of floating-point operations of a component's matrix products, by formula.

A multiplication with an addition counts as two. Nothing else is counted, as is usual: everything
that goes number by number (softmax, norms, activations, sums) grows more slowly with the width.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attentest_spec import Choices, Sizes
from attentest_spec.parameters import head_width, key_heads

BOTH_PASSES = 3
"""Forward and backward against forward alone: each product has two gradients, a product each."""


@dataclass(frozen=True)
class Work:
    """Work of a component: its sizes and choices, `batch` sentences of `length` tokens.

    Source and target are equally long.
    """

    sizes: Sizes
    choices: Choices
    batch: int
    length: int

    @property
    def rows(self) -> int:
        """Number of rows of the model's width."""
        return self.batch * self.length


def flops(component: str, work: Work) -> int:
    """Return the floating-point operations of the matrix products of one forward call."""
    formula = _FORMULAS.get(component)
    return formula(work) if formula else 0


def _linear(work: Work, inputs: int, outputs: int) -> int:
    return 2 * work.rows * inputs * outputs


def _attention(work: Work) -> int:
    """Count heads of d/h columns, which is what attention alone is given."""
    return _weighing(work, work.sizes.d_model // work.sizes.heads)


def _weighing(work: Work, width: int) -> int:
    """Count Q K^T and the product of the weights with V, for heads of `width` columns."""
    return 2 * (2 * work.batch * work.sizes.heads * work.length**2 * width)


def _multi_head_attention(work: Work) -> int:
    width = head_width(work.sizes, work.choices)
    shared = key_heads(work.sizes, work.choices)
    wide, narrow = (
        _linear(work, work.sizes.d_model, heads * width) for heads in (work.sizes.heads, shared)
    )
    return 2 * wide + 2 * narrow + _weighing(work, width)


def _feed_forward(work: Work) -> int:
    return _network(work, work.sizes.d_ff)


def _network(work: Work, inner: int) -> int:
    """Count the maps of a feed-forward network with that inner width."""
    maps = 2 if work.choices.feed_forward_gate == "none" else 3
    return maps * _linear(work, work.sizes.d_model, inner)


def _mixture_of_experts(work: Work) -> int:
    """Count the router, the chosen experts of every row, and the shared expert with its gate."""
    sizes, shared = work.sizes, work.choices.shared_expert
    routed = _linear(work, sizes.d_model, sizes.experts)
    chosen = sizes.chosen_experts * _network(work, sizes.d_ff)
    beside = 0 if shared == "none" else _network(work, sizes.shared_inner or sizes.d_ff)
    gate = _linear(work, sizes.d_model, 1) if shared == "gated" else 0
    return routed + chosen + beside + gate


def _residual(work: Work) -> int:
    return _linear(work, work.sizes.d_model, work.sizes.d_model)


def _encoder_layer(work: Work) -> int:
    return _multi_head_attention(work) + _feed_forward(work)


def _decoder_layer(work: Work) -> int:
    return 2 * _multi_head_attention(work) + _feed_forward(work)


def _encoder(work: Work) -> int:
    return work.sizes.layers * _encoder_layer(work)


def _decoder(work: Work) -> int:
    return work.sizes.layers * _decoder_layer(work)


def _generator(work: Work) -> int:
    return _linear(work, work.sizes.d_model, work.sizes.target_vocabulary)


def _model(work: Work) -> int:
    return _encoder(work) + _decoder(work) + _generator(work)


def _language_model(work: Work) -> int:
    return work.sizes.layers * _encoder_layer(work) + _generator(work)


_FORMULAS: Mapping[str, Callable[[Work], int]] = {
    "attention": _attention,
    "multi_head_attention": _multi_head_attention,
    "feed_forward": _feed_forward,
    "residual": _residual,
    "encoder_layer": _encoder_layer,
    "encoder": _encoder,
    "decoder_layer": _decoder_layer,
    "decoder": _decoder,
    "generator": _generator,
    "model": _model,
    "mixture_of_experts": _mixture_of_experts,
    "causal_layer": _encoder_layer,
    "language_model": _language_model,
}
