"""The calls of litgpt's models, of their parts, and of their cache.

Shapes: B batch, T positions, N new tokens, D model width, H heads, E head width, V vocabulary.
"""

from typing import Any

import torch
from litgpt.config import Config
from litgpt.model import GPT, apply_rope
from torch import Tensor, nn

from attentest_litgpt.sizes import sized
from attentest_spec import Sizes, Unsupported


def part(config: Config, sizes: Sizes, name: str = "") -> nn.Module:
    """Return the first block of a model, or the part `name` of it, with the table of its turns."""
    model = GPT(sized(config, sizes.but(layers=1)))
    return _with_turns(model.transformer.h[0].get_submodule(name), model)


def turns(config: Config, sizes: Sizes) -> nn.Module:
    """Return the table of the turns of a model alone."""
    return _with_turns(nn.Module(), GPT(sized(config, sizes.but(layers=0))))


def _with_turns(found: nn.Module, model: GPT) -> nn.Module:
    """Return the module `found` after it was given cosines and sines, those of full attention."""
    for name in ("cos", "sin"):
        table = getattr(model, name)
        found.register_buffer(name, table[..., 0] if table.ndim == 3 else table, persistent=False)
    return found


def logits(
    model: GPT, tokens: Tensor, keep: Tensor | None = None, positions: Tensor | None = None
) -> Any:
    """Return logits (B, T, V) for tokens (B, T); a model takes no mask and no positions."""
    _require_pairs(model.config)
    return model(tokens)


def block(
    built: Any, x: Tensor, keep: Tensor | None = None, positions: Tensor | None = None
) -> Any:
    """Return the output (B, T, D) of a block for x (B, T, D)."""
    _require_pairs(built.config)
    return built(x, *_rows(built, x.shape[1]))


def attend(built: Any, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
    """Return the output (B, T, D) of attention: the limits say that all three inputs are one."""
    _require_pairs(built.config)
    return built(x, *_rows(built, x.shape[1]), mask)


def rotate(built: Any, x: Tensor, positions: Tensor | None = None) -> Any:
    """Return x (B, H, T, E), turned."""
    return apply_rope(x, *_rows(built, x.shape[2]))


def _rows(built: Any, length: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines (1, T, E) of the first `length` positions."""
    return built.cos[:length][None], built.sin[:length][None]


def _require_pairs(config: Config) -> None:
    """Raise Unsupported where the library would turn an odd number of columns: no rotation."""
    if config.rope_n_elem % 2:
        raise Unsupported(f"{config.rope_n_elem} columns of a head would be turned: no pairs")


def empty_cache(model: GPT, rows: int) -> int:
    """Give the model an empty cache for a number of rows, and return that of its tokens."""
    _require_pairs(model.config)
    model.clear_kv_cache()
    model.set_kv_cache(batch_size=rows, device=model.cos.device)
    return 0


def step(
    model: GPT, length: int, tokens: Tensor, keep: Tensor | None, positions: Tensor | None
) -> tuple[Tensor, int]:
    """Return logits (B, N, V) for new tokens (B, N) after those in the cache, and their number.

    It is called as the library does where it generates text.
    """
    after = length + tokens.shape[1]
    places = torch.arange(length, after, device=tokens.device)
    return model(tokens, places, input_pos_maxp1=after), after
