"""Attention with a mistake that no choices have, computed step by step."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from attentest.analysis.lines.recording import Place
from attentest.targets.language_models.numbers.linears import Linear
from attentest.targets.language_models.numbers.mistakes import Mistake, Options
from attentest.targets.language_models.numbers.placing import (
    Views,
    normal_of,
    turned_by,
    turned_key,
)
from attentest.targets.language_models.numbers.reader import Reader
from attentest_spec import Choices
from attentest_spec.attention import softmax
from attentest_spec.language_model import visible
from attentest_spec.multi_head_attention import merge, repeat, split
from attentest_spec.relative_bias import relative_bias
from attentest_spec.setting import Floats, Setting

_SHARED = ("key", "value")

_PLAIN: Options = {
    "relative_bias": "none",
    "score_cap": "none",
    "attention_sink": "none",
}
"""The choices that are not computed here, with the option that leaves them out."""


def weighted_by_hand(
    reader: Reader,
    mistake: Mistake,
    options: Options,
    maps: Mapping[str, Linear],
    norms: Views,
) -> Floats:
    """Return the weighted values of all heads (B, T, H * E) with `mistake`.

    They are NaN under choices that are not computed here.
    """
    biased = options.get("relative_bias", "none") != "none"
    left_out = [name for name in _PLAIN if not (mistake.lifted and name == "relative_bias")]
    if biased != mistake.lifted or any(
        options.get(one, _PLAIN[one]) != _PLAIN[one] for one in left_out
    ):
        return np.full_like(maps["query"].output, np.nan)
    *_, values = _steps(reader, mistake, options, maps, norms)
    return values


def place_of(
    reader: Reader,
    mistake: Mistake,
    options: Options,
    maps: Mapping[str, Linear],
    norms: Views,
) -> Place | None:
    """Return the line at which the first numbers of `mistake` are computed, None for no line."""
    if mistake.ahead:
        return reader.trace.place_of_mask(mistake.seen(maps["query"].output.shape[1])[0, 0])
    if mistake.lifted:
        return None  # what is behind the query has another bias in the code, or none
    query, key, value, scores, weights, values = _steps(reader, mistake, options, maps, norms)
    wrong = [weights, values]
    of_scores = mistake.keys or mistake.unturned or mistake.scale or mistake.masked
    if of_scores or "key" in mistake.tiled:
        wrong = [scores, *wrong]
    if mistake.keys and mistake.keys(options)["attention_rotary"] != "none":
        wrong = [key, *wrong]
    if mistake.both:
        wrong = [query, *wrong]
    if mistake.turned:
        wrong = [value, *wrong]
    if mistake.tiled:
        dealt = key if "key" in mistake.tiled else value
        wrong = [_repeated(reader, mistake, mistake.tiled[0], dealt), *wrong]
    return next(filter(None, map(reader.trace.place, _by_head(wrong))), None)


def computes_before(
    reader: Reader,
    mistake: Mistake,
    options: Options,
    maps: Mapping[str, Linear],
    norms: Views,
) -> bool:
    """Say whether scores are computed with the factor that `mistake` has on its way, if any."""
    if mistake.before is None or mistake.scale is None:
        return True
    _, _, _, scores, _, _ = _steps(reader, mistake, options, maps, norms)
    factor = mistake.before(reader.sizes) / mistake.scale(reader.sizes)
    return reader.trace.holds(scores * factor, known=False)


def _by_head(wrong: Iterable[Floats]) -> Iterator[Floats]:
    """Yield the numbers of all heads, and those of the first one, as a class of one computes."""
    for one in wrong:
        yield one
        if one.ndim == 4:
            yield one[:, 0]


def _steps(
    reader: Reader,
    mistake: Mistake,
    options: Options,
    maps: Mapping[str, Linear],
    norms: Views,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """Return queries, keys, values, scores, weights, and the weighted values of all heads."""
    heads = reader.sizes.heads
    query = split(maps["query"].output, heads)
    key, value = (split(maps[one].output, reader.sizes.kv_heads or heads) for one in _SHARED)
    late = options.get("query_key_norm_place") == "after-rotation"
    if not late:
        query, key = _normed(reader, options, norms, query, key)
    if options.get("attention_rotary", "none") != "none":
        key = turned_key(reader, options, key, mistake)
        own = mistake if mistake.both else None
        query = query if mistake.unturned else turned_key(reader, options, query, own)
        value = turned_by(reader, options, value) if mistake.turned else value
    if late:
        query, key = _normed(reader, options, norms, query, key)
    scores = query @ _repeated(reader, mistake, "key", key).swapaxes(-1, -2)
    scaled = scores * query.shape[-1] ** -0.5
    if mistake.scale:
        scores = scaled = scores * mistake.scale(reader.sizes)
    if mistake.lifted:
        scores = scaled = scaled - _bias(reader, options, scores.shape[-1])
    seen = visible(scores.shape[-1])
    if mistake.masked is None:
        scaled = np.where(seen, scaled, -np.inf)
    else:
        scores = scaled = mistake.masked(scaled, seen)
    weights = softmax(scaled)
    if mistake.over_queries:
        weights = softmax(scaled.swapaxes(-1, -2)).swapaxes(-1, -2)
    merged = merge(weights @ _repeated(reader, mistake, "value", value))
    return query, key, value, scores, weights, merged


def _normed(
    reader: Reader, options: Options, norms: Views, query: Floats, key: Floats
) -> tuple[Floats, Floats]:
    """Return queries and keys under the norms that `options` say, with the weights `norms`."""
    if options.get("query_key_norm", "none") == "none":
        return query, key
    named = (("query_norm", query), ("key_norm", key))
    one, two = (normal_of(reader, options, norms, name, x) for name, x in named)
    return one, two


def _bias(reader: Reader, options: Options, length: int) -> Floats:
    """Return the bias of distances (H, T, T) under `options`."""
    given = Setting(reader.sizes, Choices.of({**reader.declared, **options}))
    found = relative_bias(given, length, length)
    assert found is not None
    return found


def _repeated(reader: Reader, mistake: Mistake, name: str, x: Floats) -> Floats:
    """Return the heads x (B, G, T, E) of keys or values for all heads of queries."""
    times = reader.sizes.heads // x.shape[1]
    return np.tile(x, (1, times, 1, 1)) if name in mistake.tiled else repeat(x, times)


def unmerged(context: Floats, heads: int) -> Floats:
    """Return merged heads (B, T, H * E) as a reshape without a transposition gives them."""
    return split(context, heads).reshape(context.shape)
