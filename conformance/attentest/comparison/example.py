"""The example that models are compared on: sizes, tokens, and the same canonical weights for all."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from attentest_spec import Choices, Limits, Sizes
from attentest_spec.contract import MASK_KINDS, Input
from attentest_spec.names import require
from attentest_spec.parameters import draw, shapes, tied
from attentest_spec.setting import Array, Floats

SEED = 7

Tokens = tuple[tuple[int, ...], ...]

WHOLE = Choices(
    final_norm="present", positional_encoding="learned", projection_bias="present", tying="none"
)
"""Choices under which a model has every parameter that it has under any, each of its own."""


class BadExample(ValueError):
    """What was given as an example is none; the text says why, and what one looks like."""


@dataclass(frozen=True)
class Example:
    """Sizes, source tokens (B, S), target tokens (B, T), and the kinds of masks that may be used.

    `notes` say what had to be changed to fit it to those that are compared.
    """

    sizes: Sizes
    source: Tokens
    target: Tokens
    masks: tuple[str, ...] = MASK_KINDS
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Example":
        """Read an example back from plain values."""
        return cls(
            Sizes(**plain["sizes"]),
            _rows(plain["source"]),
            _rows(plain["target"]),
            tuple(plain["masks"]),
            tuple(plain["notes"]),
        )

    def fitted(self, limits: Mapping[str, Limits]) -> "Example":
        """Return it inside the `limits` of all backends, given by their names, with notes.

        Raises :class:`BadExample` where no sizes suit them all.
        """
        fitted = self
        for name, one in limits.items():
            fitted = fitted._within(name, one)
        for name, one in limits.items():
            if one.fitted(fitted.sizes) != fitted.sizes:
                raise BadExample(
                    f"They cannot be compared: {name} has an inner layer of {one.inner} times the "
                    f"model's width, and another has one of {fitted.sizes.d_ff} at a width of "
                    f"{fitted.sizes.d_model}."
                )
        return fitted

    def _within(self, name: str, limits: Limits) -> "Example":
        layers = min(self.sizes.layers, limits.layers or self.sizes.layers)
        heads = min(self.sizes.heads, limits.heads or self.sizes.heads)
        length = min(self.sizes.max_length, limits.length or self.sizes.max_length)
        sizes = limits.fitted(self.sizes.but(layers=layers, heads=heads, max_length=length))
        changes = [
            f"{field} {getattr(sizes, field)} and not {getattr(self.sizes, field)}"
            for field in ("layers", "heads", "max_length", "d_ff")
            if getattr(sizes, field) != getattr(self.sizes, field)
        ]
        note = [f"{name} is limited: {', '.join(changes)}"] if changes else []
        return replace(
            self,
            sizes=sizes,
            source=tuple(row[:length] for row in self.source),
            target=tuple(row[:length] for row in self.target),
            masks=tuple(kind for kind in self.masks if kind in limits.masks),
            notes=(*self.notes, *note),
        )

    def weights(self, component: str, choices: Choices) -> dict[str, Floats]:
        """Return the canonical parameters of `component` under `choices`.

        A parameter holds the same numbers under all choices that give it the same shape.
        """
        drawn = [
            draw(component, self.sizes, WHOLE.but(head_width=width), np.random.default_rng(SEED))
            for width in ("d/h", "d")
        ]
        twins = tied(component, self.sizes, choices)
        return {
            name: next(
                one[twins.get(name, name)] for one in drawn if one[name].shape == shape
            )
            for name, shape in shapes(component, self.sizes, choices).items()
        }

    def inputs(self, component: str) -> tuple[Input, ...]:
        """Return the inputs of `component`: the tokens, or as many random rows."""
        rng, sizes = np.random.default_rng(SEED), self.sizes
        source, target = np.array(self.source), np.array(self.target)
        memory = rng.normal(size=(*source.shape, sizes.d_model))
        state = rng.normal(size=(*target.shape, sizes.d_model))
        width = sizes.d_model // sizes.heads
        query = rng.normal(size=(len(target), sizes.heads, target.shape[1], width))
        key, value = rng.normal(size=(2, len(source), sizes.heads, source.shape[1], width))
        hidden = self.mask(target.shape[1])
        layers = {"encoder": (memory, self.mask(source.shape[1])), "decoder": (
            state, memory, hidden, self.ahead(target.shape[1]))}
        given: dict[str, tuple[Input, ...]] = {
            "padding_mask": (source, sizes.source_pad),
            "causal_mask": (target.shape[1],),
            "target_mask": (target, sizes.target_pad),
            "attention": (query, key, value, hidden),
            "multi_head_attention": (state, memory, memory, hidden),
            "embedding": (source,),
            "residual": (memory, rng.normal(size=(sizes.d_model, sizes.d_model))),
            "encoder_layer": layers["encoder"],
            "decoder_layer": layers["decoder"],
            **layers,
            "model": (source, target),
        }
        return given.get(component, (memory,))
