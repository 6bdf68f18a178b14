"""The sizes that a component is built at."""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a Transformer; a component reads those that it needs.

    `d_model` (D), `heads` (H), `d_ff` (F), `layers` (N, of each stack), the two vocabularies (V),
    `max_length` (positions that must be supported), the two padding ids and the `dropout` rate
    (a probability, active in training mode alone). The values are not checked here: refusing
    impossible ones is a duty of the implementation, and clauses check that it does.

    `start` and `end` are the ids around a sequence, `smoothing` is the mass that the loss takes
    from the target and gives to other words. A schedule of learning rates reads `warmup` (the step
    of its peak, counted from 1), `total_steps` (the step at which a schedule that ends is 0) and
    `factor` (of every rate). An optimiser reads `weight_decay`, which is used where the choice of
    that name is not "none". Decoding reads the exponent `alpha` of the length penalty, and the
    settings of sampling: `temperature`, `top_k` (0 for no limit) and `top_p` (1 for no limit).
    `kv_heads` (G) is the number of heads of keys and values where the choice `key_heads` is
    "fewer", 0 for as many as `heads`; it divides `heads`.
    Rotary positions that are scaled read the factor `rotary_factor` and the length of the texts
    that the model was trained with, `trained_length`. Attention with a sliding window reads the
    `window` (W); a bias by buckets of distances reads their number `bias_buckets`, and
    `bias_distance`, from which on there is one. A mixture of experts reads the number of `experts`,
    of those that are chosen for a token, `chosen_experts`, and the inner width of the shared one,
    `shared_inner` (0 for `d_ff`).
    """

    d_model: int = 6
    heads: int = 2
    d_ff: int = 10
    layers: int = 2
    source_vocabulary: int = 11
    target_vocabulary: int = 13
    max_length: int = 32
    source_pad: int = 0
    target_pad: int = 0
    dropout: float = 0.0
    start: int = 1
    end: int = 2
    smoothing: float = 0.0
    warmup: int = 4000
    total_steps: int = 100_000
    factor: float = 1.0
    weight_decay: float = 0.01
    alpha: float = 0.6
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    kv_heads: int = 0
    rotary_factor: float = 4.0
    trained_length: int = 2048
    window: int = 3
    bias_buckets: int = 32
    bias_distance: int = 128
    experts: int = 4
    chosen_experts: int = 2
    shared_inner: int = 0

    def but(self, **changes: Any) -> "Sizes":
        """Return a copy with some sizes changed."""
        return replace(self, **changes)
