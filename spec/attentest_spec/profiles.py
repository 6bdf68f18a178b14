"""The profiles: named sets of design choices that published families of models have made."""

from collections.abc import Mapping
from dataclasses import dataclass

from attentest_spec.choices import CHOICES, Value
from attentest_spec.names import require

DEFAULT = "paper"
"""The profile of a backend that names none: Vaswani et al. 2017."""


@dataclass(frozen=True)
class Profile:
    """A named set of choices; what it leaves out is the option of Vaswani et al. 2017.

    `title` says which models these are, and `source` where the choices are published. `whole` is
    the component that such a model is.
    """

    name: str
    title: str
    source: str
    choices: Mapping[str, Value]
    whole: str = "language_model"

    def option(self, choice: str) -> Value | None:
        """Return the option that deviations of `choice` are counted from, None for any."""
        return self.choices.get(choice, CHOICES[choice].paper)


_DECODER: Mapping[str, Value] = {
    "block_norms": "pre",
    "final_norm": "present",
    "embedding_scale": "none",
    "output": "logits",
    "generator_bias": "none",
}
_LLAMA: Mapping[str, Value] = {
    **_DECODER,
    "norm_kind": "rms",
    "rms_epsilon": 1e-5,
    "rms_cast": "before-weight",
    "positional_encoding": "none",
    "attention_rotary": "query-and-key",
    "rotary_pairs": "halves",
    "attention_causality": "built-in",
    "key_heads": "fewer",
    "feed_forward_gate": "gated",
    "feed_forward_bias": "none",
    "activation": "silu",
    "tying": "none",
}
_QWEN: Mapping[str, Value] = {**_LLAMA, "rms_epsilon": 1e-6, "rotary_base": 1e6}
_GEMMA: Mapping[str, Value] = {
    **{name: one for name, one in _LLAMA.items() if name not in ("embedding_scale", "tying")},
    "rms_epsilon": 1e-6,
    "rms_weight": "one-plus-weight",
    "rms_cast": "after-weight",
    "activation": "gelu-tanh",
}
_NEOX: Mapping[str, Value] = {
    **_DECODER,
    "positional_encoding": "none",
    "attention_rotary": "query-and-key",
    "rotary_pairs": "halves",
    "attention_causality": "built-in",
    "block_layout": "parallel-two-norms",
    "rotary_width": 0.25,
    "projection_bias": "present",
    "activation": "gelu",
    "tying": "none",
}
_PROFILES = (
    Profile(DEFAULT, "Vaswani et al. 2017", "arXiv 1706.03762", {}, "model"),
    Profile(
        "gpt2",
        "GPT-2: norms before the sublayers, learned positions, one tied matrix",
        "Radford et al. 2019, section 2.3; code",
        {
            **_DECODER,
            "positional_encoding": "learned",
            "attention_causality": "built-in",
            "projection_bias": "present",
            "activation": "gelu-tanh",
        },
    ),
    Profile(
        "neox",
        "GPT-NeoX-20B: parallel blocks, a quarter of each head turned",
        "Black et al. 2022, section 2.1; code",
        _NEOX,
    ),
    Profile(
        "llama",
        "Llama 2: RMS norms, rotary positions, SwiGLU, shared heads of keys and values",
        "Touvron et al. 2023 (arXiv 2307.09288), section 2.2; code",
        _LLAMA,
    ),
    Profile(
        "mistral",
        "Mistral 7B: Llama with a sliding window",
        "Jiang et al. 2023, section 2; code",
        {**_LLAMA, "attention_window": "with-query"},
    ),
    Profile(
        "qwen2",
        "Qwen2: Llama with biases of query, key and value",
        "Yang et al. 2024 (arXiv 2407.10671), section 2.2; code",
        {**_QWEN, "projection_bias": "all-but-output"},
    ),
    Profile(
        "qwen3",
        "Qwen3: Llama with norms of each head of queries and keys",
        "Yang et al. 2025 (arXiv 2505.09388), section 2; code",
        {**_QWEN, "query_key_norm": "per-head"},
    ),
    Profile(
        "gemma",
        "Gemma: scaled and tied embeddings, 1 + weight, gates of tanh GELU",
        "Gemma Team 2024 (arXiv 2403.08295), section 2; code",
        _GEMMA,
    ),
    Profile(
        "gemma2",
        "Gemma 2: Gemma with norms on both sides, and soft caps of scores and logits",
        "Gemma Team 2024 (arXiv 2408.00118), section 2; code",
        {**_GEMMA, "block_norms": "sandwich", "score_cap": 50.0, "logit_cap": 30.0},
    ),
)

PROFILES: Mapping[str, Profile] = {one.name: one for one in _PROFILES}


def profile_of(name: str) -> Profile:
    """Return the profile `name`; UnknownName with the nearest ones where there is none."""
    return PROFILES[require("profile", name, PROFILES)]
