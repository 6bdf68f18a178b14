"""The one mistake of the catalogue that gives all numbers of a whole model, where no choice does.

Then nothing is guessed: such a model is judged, and is no question.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from attentest.analysis.encoded import ONE_SIDE, TABLES, Called, options_of
from attentest_spec import Backend, Choices
from attentest_spec.choices import Value

MISTAKES = (
    *TABLES,
    *ONE_SIDE,
    "feed_forward.no-activation",
    "attention.scale-missing",
    "attention.scale-by-model-width",
    "attention.scale-without-root",
    "attention.scale-multiplied",
    "attention.softmax-over-queries",
    "multi_head_attention.merged-without-transpose",
    "multi_head_attention.split-without-transpose",
    "encoder.no-skip-around-attention",
    "encoder.no-skip-around-feed-forward",
    "encoder.second-skip-from-the-input",
    "encoder.first-norm-twice",
    "encoder.norms-exchanged",
    "decoder.no-skip-around-self-attention",
    "decoder.no-skip-around-the-memory",
    "decoder.no-skip-around-feed-forward",
    "decoder.first-norm-three-times",
    "decoder.second-norm-twice",
)
"""Mistakes that no design of a whole model makes, the likeliest first."""

_FREE = ("norm_placement", "activation")
"""Choices that a mistake may leave unmeasured."""

_MOST = 8
"""Limit of the choices that are tried with each mistake."""


def mistake_of_model(
    backend: Backend, known: Mapping[str, Value]
) -> tuple[str, Mapping[str, Value]]:
    """Return the mistake that gives the output of a model, and the choices beside it; "" for none.

    It has to be its output at two sizes. `known` are the choices that are measured otherwise.
    """
    for choices in _choices(known):
        small, large = (Called.of(backend, choices, layers=layers) for layers in (1, 2))
        if small is None or large is None:
            continue
        declared = Choices.of(choices)
        for name in MISTAKES:
            if small.is_of(name, declared) and large.is_of(name, declared):
                return name, choices
    return "", {}


def _choices(known: Mapping[str, Value]) -> Iterator[Mapping[str, Value]]:
    rows = [[{name: one} for one in options_of(name, known)] for name in _FREE]
    ways = [{**known, **first, **second} for first, second in product(*rows)]
    positions: list[Mapping[str, Value]] = [{}]
    if known.get("positional_encoding", "none") == "none":
        positions += [
            {"positional_encoding": "interleaved", "embedding_scale": one}
            for one in ("none", "sqrt-d")
        ]
    for more in positions:
        for way in ways[:_MOST]:
            yield {**way, **more}
