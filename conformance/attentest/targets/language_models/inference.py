"""The inference of all that a decoder-only model is, from one traced call in double precision."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.building import PROBE, Building, building
from attentest.targets.language_models.calling import (
    Arguments,
    Call,
    apart_without_labels,
    arguments_of,
    fitted,
    probe_tokens,
)
from attentest.targets.language_models.numbers.constants import constants
from attentest.targets.language_models.numbers.experts import watched
from attentest.targets.language_models.numbers.places import Parameters
from attentest.targets.language_models.numbers.reader import Reader
from attentest.targets.language_models.numbers.search import search
from attentest.targets.language_models.numbers.tracing import traced, widened
from attentest.targets.language_models.profiles import nearest, spoken
from attentest.targets.language_models.tables import table_of
from attentest.targets.nearest import shown_line
from attentest_spec import Place, Sizes
from attentest_spec.choices import Value
from attentest_spec.setting import Array, Floats


@dataclass(frozen=True)
class Inferred:
    """A model as it was read: how it is built and called, its parameter map and its choices.

    `inner` is the inner width of its network at the sizes of the probe.
    """

    building: Building
    call: Call
    arguments: Arguments
    table: Mapping[str, Place]
    choices: Mapping[str, Value]
    inner: int


def probe_of(built: Building, sizes: Sizes) -> nn.Module:
    """Return the model at `sizes` in double precision, with random numbers for what it trains."""
    generator = torch.Generator().manual_seed(3)
    with widened():
        model: nn.Module = built(sizes).double().eval()
        held = list(model.parameters())
        for one in [one for one in held if one.requires_grad] or held:
            noise = torch.randn(one.shape, generator=generator, dtype=torch.float64)
            if one.dim() > 1:
                one.copy_(noise * min(one.shape[-1], sizes.d_model) ** -0.5)
            else:
                one.add_(0.3 * noise)
    return model


def called(
    thing: Callable[..., Any], name: str, reading: Reading
) -> tuple[Building, Arguments, Call]:
    """Return how a model is built and called; Unclear where it is not."""
    built = building(thing, name, reading)
    model = probe_of(built, probe_sizes(built))
    arguments = arguments_of(model, name, reading)
    with widened():
        return built, arguments, fitted(model, arguments, name)


def infer(thing: Callable[..., Any], name: str, reading: Reading) -> Inferred:
    """Return all that the numbers say of a model; Unclear, with one question, where they do not."""
    built, arguments, call = called(thing, name, reading)
    sizes = probe_sizes(built)
    model = probe_of(built, sizes)
    tokens = probe_tokens()
    with watched(model) as mixtures:
        trace, output = traced(lambda: call.compiled()(model, tokens))
    start = {
        "attention_causality": "built-in",
        "key_heads": "fewer" if sizes.kv_heads else "as-queries",
        **reading.choices,
    }
    parameters = Parameters(model, sizes)
    reader = Reader(
        trace=trace,
        parameters=parameters,
        sizes=sizes,
        constants=constants(model, thing),
        declared=reading.choices,
        widths=_widths(built, parameters),
    )
    given = start, tokens.numpy(), output.detach().double().numpy()
    found = search(reader, *given)
    if found is None:
        if mixtures:
            reader = replace(reader, mixtures=mixtures, reached=_START, suspected="", seen={})
            reader.began = process_time()
        raise Unclear(_experts(name, reader, *given) or _question(name, reader))
    table = table_of(found.views)
    if isinstance(table, str):
        raise Unclear(
            f"{name} was read as a decoder-only model, and {table}: its parameters have no map. "
            f"Write a backend by hand, as docs/how-to/add-an-implementation.md shows."
        )
    _demand_one_answer(model, call, name)
    inner = len(found.views["layers.0.feed_forward.inner.weight"].values)
    return Inferred(built, call, arguments, table, found.choices, inner)


_START = 0, "the embeddings"


def _experts(
    name: str, reader: Reader, start: Mapping[str, Value], tokens: Array, output: Floats
) -> str:
    """Return what is said of a model that agrees outside of its experts, "" for any other."""
    found = search(reader, start, tokens, output) if reader.mixtures else None
    if found is None:
        return ""
    kinds = " and ".join(dict.fromkeys(one.name for one in reader.mixtures))
    return (
        f"{name} is a decoder-only model with a mixture of experts, {kinds}, in the place of its "
        f"feed-forward network. Around the experts it has the numbers of the reference, under the "
        f"choices of {spoken(found.choices, nearest(found.choices))}: if you meant others, this is "
        f"a mistake. Whole models with experts are not judged: name {kinds}, which is judged by "
        f"itself."
    )


def _demand_one_answer(model: nn.Module, call: Call, name: str) -> None:
    """Raise Unclear for a model whose last step is another one without labels."""
    with widened():
        apart = apart_without_labels(model, call)
    if apart is not None and not apart <= _ONE_ANSWER:  # NaN is another answer
        raise Unclear(
            f"{name} gives the reference's numbers for all tokens where {call.labels} are given; "
            f"without them, as code that generates calls it, it answers for one token alone, and "
            f"that is not the last of them: the logits differ by {apart:.2g}. Look at what it "
            f"computes where {call.labels} is None."
        )


_ONE_ANSWER = 1e-3
"""Difference in logits of about 1 beyond which two answers are not one, in single precision too."""


def probe_sizes(built: Building) -> Sizes:
    """Return the sizes of the probe, with fewer heads of keys where code takes their number."""
    return PROBE if "kv_heads" in built.known else PROBE.but(kv_heads=0)


def _widths(built: Building, parameters: Parameters) -> tuple[int, ...]:
    """Return what the inner width of the network may be."""
    if "d_ff" in built.known:
        return (PROBE.d_ff,)
    known = {PROBE.d_model, PROBE.target_vocabulary, PROBE.max_length, PROBE.layers}
    held = {size for one in parameters.own.values() if one.ndim > 1 for size in one.shape}
    return tuple(sorted({*held, *(one // 2 for one in held if one % 2 == 0)} - known - {0}))


def _question(name: str, reader: Reader) -> str:
    known = f" (it computes those of {reader.suspected})" if reader.suspected else ""
    late = " The search was ended by its time limit." if reader.is_late else ""
    missing = reader.reached[1].startswith(("the sum", "the norms"))
    place = reader.trace.departure(before=missing)
    line = f"; those that it computes instead begin at {shown_line(place)}" if place else ""
    return (
        f"{name} was read as a decoder-only model, and no option of the specification gives its "
        f"numbers: the first that are computed nowhere in it are {reader.reached[1]}{known}{line}."
        f"{late} Either that is a mistake, or a design that the specification does not have: "
        f"compare it with its formula (attentest explain language_model), or name the classes of "
        f"its parts, one by one. A choice that it makes is declared with --choice NAME=OPTION."
    )
