"""The decoder-only families of the library, found by their configurations."""

import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import transformers
from transformers import PreTrainedConfig
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from attentest_spec import Backend
from attentest_transformers_causal.backend import KERNELS, backend_of
from attentest_transformers_causal.reading import Reading, read
from attentest_transformers_causal.structure import NotJudged

_OUTSIDE = {
    r"expert": "experts",
    r"mamba|ssm|conv_kernel|conv_L_cache|rwkv|lru_width|attention_hidden_size|qk_dim_factor":
        "layers with a state or a convolution",
    r"kv_lora_rank": "latent attention",
    r"(vision|audio|text)_config|vision_start|audio_": "images or sound",
}  # fmt: skip
"""Settings of designs that the specification has no words for, and their names."""

_PLAIN = (
    {"logit_scale": 1.0},
    {"multi_query": False},
    {"no_rope_layer_interval": 1000},
    {"layer_types": None, "sliding_window": None},
)
"""Settings under which a family is in the specification, where with its own it is not."""


Family = Callable[[], Mapping[str, Backend | str]]
"""A function that returns, for each attention kernel, a backend or the reason for none."""


def families() -> dict[str, Family]:
    """Return every family by its name, as a function that reads it.

    A family is a class of language models of the library; its name is that of its configuration.
    Decoders of an encoder and a decoder are left out.
    Nothing is downloaded.
    """
    transformers.logging.set_verbosity_error()
    kinds: dict[str, list[str]] = {}
    for kind, model in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items():
        if getattr(CONFIG_MAPPING[kind], "is_encoder_decoder", False) is not True:
            kinds.setdefault(model, []).append(kind)
    names = [
        min(same, key=lambda kind: kind not in model.lower())  # llama, of Llama's configurations
        for model, same in kinds.items()
    ]
    return {name: partial(family, name) for name in sorted(names)}


def family(kind: str) -> dict[str, Backend | str]:
    """Return the backends of a type of configuration by kernels, or why there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            config = CONFIG_MAPPING[kind]()
            _require_design(config)
            config, reading, changed = _read(config)
        except Exception as failure:  # the library raises errors of many types
            return dict.fromkeys(KERNELS, _reason(failure))
        found: dict[str, Backend | str] = {}
        for kernel in KERNELS:
            try:
                found[kernel] = backend_of(config, reading, kernel, f"{kind}_{kernel}", changed)
            except NotJudged as reason:
                found[kernel] = str(reason)
        return found


def _require_design(config: PreTrainedConfig) -> None:
    """Raise NotJudged for a configuration with settings of another design."""
    if config.is_encoder_decoder:
        raise NotJudged("it is the decoder of an encoder and a decoder")
    for name in config.to_dict():
        for pattern, design in _OUTSIDE.items():
            if re.search(pattern, name):
                raise NotJudged(f"its configuration has settings of {design}: {name}")


def _read(config: PreTrainedConfig) -> tuple[PreTrainedConfig, Reading, str]:
    """Return the configuration with its reading, and which settings were changed for it."""
    try:
        return config, read(config), ""
    except NotJudged as reason:
        for changes in _PLAIN:
            known = {name: one for name, one in changes.items() if _differs(config, name, one)}
            with suppress(Exception):  # the changed settings may not be possible
                if known:
                    changed = type(config)(**known)
                    said = ", ".join(f"{name}={one}" for name, one in known.items())
                    return changed, read(changed), said
        raise reason


def _differs(config: PreTrainedConfig, name: str, value: object) -> bool:
    return name in config.to_dict() and getattr(config, name) != value


def _reason(failure: Exception) -> str:
    text = " ".join(str(failure.__cause__ or failure).split())[:160]
    return text if isinstance(failure, NotJudged) else f"{type(failure).__name__}: {text}"
