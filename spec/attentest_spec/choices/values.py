"""One value for every design choice, and the values of the paper."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from attentest_spec.choices.attention import ATTENTION
from attentest_spec.choices.choice import Choice, Value
from attentest_spec.choices.decoder_only import DECODER_ONLY
from attentest_spec.choices.decoding import DECODING
from attentest_spec.choices.experts import EXPERTS
from attentest_spec.choices.initial import INITIAL
from attentest_spec.choices.language_model import LANGUAGE_MODEL
from attentest_spec.choices.rotary import ROTARY
from attentest_spec.choices.table import ENTRIES
from attentest_spec.choices.training import TRAINING
from attentest_spec.names import require

_ALL = (
    *ENTRIES,
    *INITIAL,
    *TRAINING,
    *DECODING,
    *DECODER_ONLY,
    *ATTENTION,
    *ROTARY,
    *LANGUAGE_MODEL,
    *EXPERTS,
)
CHOICES: Mapping[str, Choice] = {one.name: one for one in _ALL}


@dataclass(frozen=True, kw_only=True)
class Choices:
    """One value for every choice; what is not given is the first option.

    Raises ValueError for a value that is no option, and :class:`~attentest_spec.names.UnknownName`
    (from :meth:`of`) for a name that is no choice.
    """

    norm_placement: str = "post"
    final_norm: str = "none"
    norm_epsilon_place: str = "inside-root"
    norm_variance: str = "biased"
    norm_epsilon: float = 1e-5
    norm_bias: str = "present"
    norm_sharing: str = "separate"
    embedding_scale: str = "sqrt-d"
    positional_encoding: str = "interleaved"
    position_offset: Value = "none"
    position_arithmetic: str = "as-computed"
    embedding_norm: str = "none"
    head_width: str = "d/h"
    mask_fill: Value = "exact"
    fully_masked_row: str = "unspecified"
    softmax_arithmetic: str = "as-computed"
    activation: str = "relu"
    feed_forward_bias: str = "present"
    projection_bias: str = "none"
    logit_scale: str = "none"
    output: str = "probabilities"
    generator_bias: str = "present"
    tying: str = "all-three"
    # Initialisation.
    initialisation: str = "unspecified"
    initialisation_packing: str = "separate"
    residual_initialisation: str = "none"
    generator_initialisation: str = "unspecified"
    embedding_initialisation: str = "unspecified"
    pad_row_initialisation: str = "unspecified"
    bias_initialisation: str = "unspecified"
    # Training.
    padding_side: str = "right"
    sequence_marks: str = "start-and-end"
    loss_input: str = "logits"
    smoothed_mass: str = "all-words"
    loss_normaliser: str = "tokens"
    loss_measure: str = "cross-entropy"
    loss_without_targets: str = "zero"
    schedule: str = "noam"
    first_step: str = "one"
    adam_beta1: Value = "0.9"
    adam_beta2: Value = "0.98"
    adam_epsilon: Value = "1e-9"
    adam_epsilon_place: str = "outside-root"
    bias_correction: str = "present"
    weight_decay: str = "none"
    decay_groups: str = "all"
    update_count: str = "own"
    means_arithmetic: str = "as-parameters"
    clip_epsilon: Value = "none"
    # Decoding.
    cache_positions: str = "columns"
    cache_update: str = "functional"
    cache_sessions: str = "independent"
    decoding_stop: str = "end-token"
    after_end: str = "padding"
    decoding_mode: str = "as-given"
    length_penalty: str = "wu"
    counted_length: str = "new"
    finished_beams: str = "in-beam"
    beam_stop: str = "length"
    filter_order: str = "temperature-first"
    nucleus: str = "of-what-is-left"
    # Decoder-only models.
    key_heads: str = "as-queries"
    attention_causality: str = "by-mask"
    feed_forward_gate: str = "none"
    rms_epsilon_place: str = "inside-root"
    rms_epsilon: float = 1e-6
    rms_weight: str = "weight"
    rms_bias: str = "none"
    rms_arithmetic: str = "as-computed"
    rms_cast: str = "unspecified"
    # Inside attention.
    attention_rotary: str = "none"
    query_alignment: str = "equal-numbers"
    attention_window: str = "none"
    query_key_norm: str = "none"
    query_key_norm_place: str = "before-rotation"
    score_scale: Value = "inverse-sqrt-e"
    score_cap: Value = "none"
    attention_sink: str = "none"
    relative_bias: str = "none"
    # Rotary positions.
    rotary_pairs: str = "adjacent"
    rotary_base: Value = "10000"
    rotary_width: Value = "whole"
    rotary_partial: str = "contiguous"
    rotary_scaling: str = "none"
    rotary_magnitude: Value = "as-scaling"
    rotary_direction: str = "forward"
    rotary_arithmetic: str = "as-computed"
    # Whole decoder-only models.
    norm_kind: str = "layer"
    block_norms: str = "post"
    block_layout: str = "sequential"
    padded_positions: str = "columns"
    packed_documents: str = "one-text"
    logit_cap: Value = "none"
    # Mixtures of experts.
    router_scores: str = "softmax"
    routing_weights: str = "renormalised"
    router_bias: str = "none"
    shared_expert: str = "none"
    routing_scale: Value = "none"
    routing_arithmetic: str = "as-computed"

    def __post_init__(self) -> None:
        """Check every value against the options of its choice."""
        default = vars(Choices)  # most values are the default itself, and need no look
        for name, given in self.as_dict().items():
            if given is not default[name]:
                object.__setattr__(self, name, CHOICES[name].check(given))
        for name in ("norm_epsilon", "rms_epsilon"):
            if float(self[name]) < 0:
                raise ValueError(f"{name} must be at least 0, and {self[name]} is not.")
        if isinstance(self.mask_fill, float) and self.mask_fill >= 0:
            raise ValueError(f"mask_fill must be negative, and {self.mask_fill} is not.")
        for name, largest in (("adam_beta1", 1.0), ("adam_beta2", 1.0), ("adam_epsilon", inf)):
            if not 0 <= float(getattr(self, name)) < largest:
                raise ValueError(f"{name} must be {CHOICES[name].number}; {self[name]:g} is not.")
        if isinstance(self.clip_epsilon, float) and self.clip_epsilon <= 0:
            raise ValueError(f"clip_epsilon must be above 0, and {self.clip_epsilon:g} is not.")
        self._check_numbers()
        offset = self.position_offset
        if isinstance(offset, float) and not (offset > 0 and offset.is_integer()):
            raise ValueError(f"position_offset must be a whole number above 0; {offset:g} is not.")

    def _check_numbers(self) -> None:
        """Check the numbers among the choices of attention and of rotary positions."""
        limits = {"rotary_base": (1.0, inf), "rotary_width": (0.0, 1.0)}
        positive = ("rotary_magnitude", "score_scale", "score_cap", "logit_cap", "routing_scale")
        for name, (least, most) in (limits | dict.fromkeys(positive, (0.0, inf))).items():
            value = getattr(self, name)
            if isinstance(value, float) and not least < value < most:
                raise ValueError(f"{name} must be {CHOICES[name].number}; {value:g} is not.")

    @classmethod
    def of(cls, declared: Mapping[str, Value]) -> "Choices":
        """Build the full set from what a backend declared."""
        for name in declared:
            require("choice", name, CHOICES)
        try:
            return _complete(**declared)
        except TypeError:  # a value without a hash is no option, and the error says so
            return cls(**dict(declared))  # type: ignore[arg-type]  # __post_init__ checks them

    def but(self, **changes: Value) -> "Choices":
        """Return a copy with some choices changed."""
        try:
            return _changed(self, **changes)
        except TypeError:  # a value without a hash is no option, and the error says so
            return replace(self, **changes)  # type: ignore[arg-type]  # __post_init__ checks them

    def __hash__(self) -> int:
        """Return the hash of all values: that of a dataclass looks up each, and takes longer."""
        return hash(tuple(vars(self).values()))

    def __getitem__(self, name: str) -> Value:
        """Return the value of the choice `name`."""
        require("choice", name, CHOICES)
        value: Value = getattr(self, name)
        return value

    def as_dict(self) -> dict[str, Value]:
        """Return every choice with its value, in the order of :data:`CHOICES`."""
        return dict(vars(self))


@lru_cache(256, typed=True)  # typed: 1 is a number, and True is none
def _complete(**declared: Value) -> Choices:
    """Return the full set: the same one each time, since every part that is built needs it."""
    return Choices(**declared)  # type: ignore[arg-type]  # __post_init__ checks each value


@lru_cache(4096, typed=True)
def _changed(choices: Choices, **changes: Value) -> Choices:
    """Return a copy with some choices changed: diagnosis asks for the same ones time and again."""
    if not changes.keys() <= vars(choices).keys():
        return replace(choices, **changes)  # type: ignore[arg-type]  # which says what is unknown
    made = object.__new__(Choices)  # not `replace`, which takes five times as long
    vars(made).update(vars(choices), **changes)
    made.__post_init__()
    return made


PAPER = Choices()
