"""Inputs of a component of an example: weights that are the same for all, and its arguments."""

from typing import Annotated

import numpy as np

from attentest.studies.comparison.example import Example
from attentest_spec import Choices
from attentest_spec.contract import Input
from attentest_spec.parameters import draw_one, shapes, tied
from attentest_spec.precision import dtype
from attentest_spec.setting import Array, Floats

SEED = 7


def weights(example: Example, component: str, choices: Choices) -> dict[str, Floats]:
    """Return the canonical parameters of `component` under `choices`.

    A parameter holds the same numbers under all choices that give it the same shape, as each is
    drawn by its own name, and a tied one those of the parameter that it is tied to.
    """
    twins = tied(component, example.sizes, choices)
    return {
        name: _weight(twins.get(name, name), shape)
        for name, shape in shapes(component, example.sizes, choices).items()
    }


def _weight(name: str, shape: tuple[int, ...]) -> Floats:
    return draw_one(name, shape, np.random.default_rng([SEED, *name.encode()]))


def inputs(example: Example, component: str) -> tuple[Input, ...]:
    """Return the inputs of `component`: tokens, or random rows in their places.

    Numbers are in the precision of `example`.
    """
    rng, sizes = np.random.default_rng(SEED), example.sizes
    source, target = np.array(example.source), np.array(example.target)
    memory = rng.normal(size=(*source.shape, sizes.d_model))
    state = rng.normal(size=(*target.shape, sizes.d_model))
    narrow = max(1, sizes.d_model // sizes.heads)
    query = rng.normal(size=(len(target), sizes.heads, target.shape[1], narrow))
    key, value = rng.normal(size=(2, len(source), sizes.heads, source.shape[1], narrow))
    read, kept = hiding_pads(example, target.shape[1]), hiding_pads(example, source.shape[1])
    if hides_later_by_itself(example):
        query = rng.normal(size=key.shape)
        read = kept = causal(source.shape[1])
    decoding = (state, memory, read, hiding_later(example))
    given: dict[str, tuple[Input, ...]] = {
        "padding_mask": (source, sizes.source_pad),
        "causal_mask": (target.shape[1],),
        "target_mask": (target, sizes.target_pad),
        "attention": (query, key, value, read),
        "multi_head_attention": (
            (state, memory, memory, read) if example.cross else (memory, memory, memory, kept)
        ),
        "embedding": (source,),
        "residual": (memory, rng.normal(size=(sizes.d_model, sizes.d_model))),
        "encoder_layer": (memory, kept),
        "encoder": (memory, kept),
        "decoder_layer": decoding,
        "decoder": decoding,
        "model": (source, target),
        "batch": (source, target),
        "padded_batch": (target.ravel(), np.full(len(target), target.shape[1])),
        "packed_batch": (target.ravel(), np.full(len(target), target.shape[1])),
        # Positive numbers are an output of every kind that a loss may take.
        "loss": (rng.uniform(0.1, 0.9, size=(*target.shape, sizes.target_vocabulary)), target),
        "learning_rate": (sizes.warmup // 2,),
        "optimiser": (rng.normal(size=6), rng.normal(size=(4, 6)), np.full(4, 0.01)),
        "grouped_optimiser": (
            rng.normal(size=6),
            rng.normal(size=(4, 6)),
            np.full(4, 0.01),
            np.array([2, 3, 1]),
            np.array([0, 1, 2]),
            np.ones((4, 3), dtype=bool),
            2,
        ),
        "gradient_clipping": (rng.normal(size=6), np.array([2, 4]), np.array(1.0)),
        "rotary": (key, None),
        "causal_layer": (state, None, None),
        "language_model": (target, None, None),
    }
    wanted = dtype(example.precision)
    return tuple(
        one.astype(wanted) if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one
        for one in given.get(component, (memory,))
    )


def hiding_pads(example: Example, queries: int) -> Array | None:
    """Return a mask over the source, of the first kind that hides its pads and may be used."""
    keep = real(example, "source")
    batch, keys = keep.shape
    kinds = {"padding": 1, "per-sample": queries}
    for kind, rows in kinds.items():
        if kind in example.masks:
            return np.broadcast_to(keep[:, None, None, :], (batch, 1, rows, keys)).copy()
    return None if "none" in example.masks else np.ones((1, 1, queries, keys), dtype=bool)


def hides_later_by_itself(example: Example) -> bool:
    """Return whether attention has keys that are its queries, and no mask but the causal one."""
    return set(example.masks) == {"causal"}


def causal(length: int) -> Annotated[Array, "1 1 L L"]:
    """Return the mask (1, 1, `length`, `length`) that hides later positions."""
    return np.tril(np.ones((1, 1, length, length), dtype=bool))


def hiding_later(example: Example) -> Array | None:
    """Return the causal mask over the target, where it may be used."""
    length = len(example.target[0])
    if "causal" in example.masks:
        return causal(length)
    return None if "none" in example.masks else np.ones((1, 1, length, length), dtype=bool)


def real(example: Example, side: str) -> Array:
    """Return where the tokens (B, L) of `side`, "source" or "target", are no pads."""
    pad = getattr(example.sizes, f"{side}_pad")
    kept: Array = np.array(getattr(example, side)) != pad
    return kept


def judged(example: Example, component: str, part: str) -> Array | None:
    """Return the rows (B, L) of a part's output that say something; None for all.

    What stands at a pad differs among sound implementations.
    """
    if component in ("encoder", "encoder_layer"):
        hidden = hiding_pads(example, len(example.source[0]))
        return real(example, "source") if hidden is not None else None
    if component != "model":
        return None
    memory = part.endswith((".cross_attention.key", ".cross_attention.value"))
    of_source = part.startswith(("source_", "encode")) or memory
    return real(example, "source" if of_source else "target")
