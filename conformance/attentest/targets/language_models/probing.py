"""One traced call of a decoder-only model, and what is looked for among its numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.construction.building import PROBE, Building
from attentest.targets.language_models.numbers.constants import constants
from attentest.targets.language_models.numbers.experts import Mixture, watched
from attentest.targets.language_models.numbers.mistakes import Mistake
from attentest.targets.language_models.numbers.places import Parameters
from attentest.targets.language_models.numbers.reader import Reader
from attentest.targets.language_models.numbers.tracing import NEAR, traced
from attentest.targets.language_models.surrounded.modules import EveryStep, FilledUp, OneText
from attentest.targets.single import widened
from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.setting import Array, Floats
from attentest_spec.torch.gradients import gradients

_START = 0, "the embeddings"

_PLAUSIBLE = 1e3
"""The size of numbers that gains and biases begin with: of those without any, the memory has some.
"""


@dataclass(frozen=True)
class Probed:
    """A traced call: its reader, and what a search is given besides it.

    `mixtures` are the calls of mixtures of experts.
    """

    reader: Reader
    given: tuple[Mapping[str, Value], Array, Floats]
    mixtures: Sequence[Mixture]

    def with_experts(self) -> Reader:
        """Return a reader that takes the numbers of experts as they are."""
        return replace(self._fresh(), mixtures=self.mixtures)

    def with_mistake(self, mistake: Mistake) -> Reader:
        """Return a reader that takes `mistake` for a formula."""
        return replace(self._fresh(), mistaken=mistake)

    def by_layer(self, own: tuple[str, ...]) -> Reader | None:
        """Return a reader of layers that differ in choices that begin so.

        None where the first layer has no such numbers, or there is no second one.
        """
        if not self.reader.in_second_layer:
            return None
        return replace(self._fresh(), by_layer=own)

    def _fresh(self) -> Reader:
        began = process_time()
        return replace(
            self.reader, reached=_START, suspected=None, begun=None, seen={}, began=began
        )


def probed(
    thing: Callable[..., Any], built: Building, call: Call, sizes: Sizes, reading: Reading
) -> Probed:
    """Return the call of a model at `sizes` with the tokens of the probe, recorded."""
    model = probe_of(built, sizes)
    # A text that is filled up has the numbers of a whole one.
    whole = isinstance(model, FilledUp)
    tokens = probe_tokens(steps=sizes.max_length) if whole else probe_tokens()
    with watched(model) as mixtures:
        alone = model.model if isinstance(model, OneText | EveryStep) else model
        beside = isinstance(model, EveryStep)
        trace, output = traced(lambda: call.compiled()(model, tokens), alone, beside=beside)
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
        widths=_widths(built, parameters, sizes),
        idle=idle_parameters(model, output),
    )
    return Probed(reader, (start, tokens.numpy(), output.detach().double().numpy()), mixtures)


def idle_parameters(model: nn.Module, output: torch.Tensor) -> list[str]:
    """Return the names of parameters that `output` does not depend on."""
    held = {name: one for name, one in model.named_parameters() if one.requires_grad}
    if not held or not output.requires_grad:
        return []
    found = gradients(output.sum(), list(held.values()))
    return [name for name, one in zip(held, found, strict=True) if one is None]


def probe_of(built: Building, sizes: Sizes) -> nn.Module:
    """Return the model at `sizes` in double precision, with random numbers for what it trains."""
    generator = torch.Generator().manual_seed(3)
    with widened():
        model: nn.Module = built(sizes).double().eval()
        held = list(model.parameters())
        for one in [one for one in held if one.requires_grad] or held:
            noise = torch.randn(one.shape, generator=generator, dtype=torch.float64)
            if one.dim() > 1:
                one.copy_(noise * max(min(one.shape[-1], sizes.d_model), 1) ** -0.5)
            else:
                one.masked_fill_(~(one.abs() < _PLAUSIBLE), 1.0).add_(0.3 * noise)
    return model


def probe_sizes(built: Building) -> Sizes:
    """Return the sizes of the probe, with fewer heads of keys where code takes their number.

    Without that number the shapes of its projections may show one head of keys.
    """
    sizes = PROBE if built.otherwise is None else PROBE.but(layers=1)
    if "kv_heads" in built.known:
        return sizes
    return sizes.but(kv_heads=int(has_one_key_head(built)))


def has_one_key_head(built: Building) -> bool:
    """Say whether the shapes of a model show one head of keys and values, and no size does.

    They depend on the number of heads, as a width that is fixed does not.
    """
    if "kv_heads" in built.known:
        return False
    several, fewer = (_as_wide_as_one_head(built, PROBE.but(heads=n)) for n in (PROBE.heads, 4))
    return 0 < several == fewer


def _as_wide_as_one_head(built: Building, sizes: Sizes) -> int:
    """Return the number of projections to one head of keys, of values, or with all of queries.

    A list with a projection for each head has more of them where there are more heads.
    """
    width = sizes.d_model // sizes.heads
    rows = {width, 2 * width, sizes.d_model + 2 * width}
    try:
        with undisturbed():
            shapes = [{*one.shape} for one in built(sizes).parameters() if one.dim() == 2]
    except Exception:  # code that a user wrote may raise anything
        return 0
    return sum(sizes.d_model in shape and bool(shape & rows) for shape in shapes)


def _widths(built: Building, parameters: Parameters, sizes: Sizes) -> tuple[int, ...]:
    """Return what the inner width of the network may be."""
    if "d_ff" in built.known:
        return (sizes.d_ff,)
    known = {sizes.d_model, sizes.target_vocabulary, sizes.max_length, sizes.layers}
    held = {size for one in parameters.own.values() if one.ndim > 1 for size in one.shape}
    return tuple(sorted({*held, *(one // 2 for one in held if one % 2 == 0)} - known - {0}))


def rounds(built: Building, call: Call) -> bool:
    """Say whether a model in double precision computes with less inside."""
    model, tokens, function = probe_of(built, probe_sizes(built)), probe_tokens(), call.compiled()
    with widened():
        wide = function(model, tokens)
    try:
        with undisturbed():
            plain = function(model, tokens)
    except Exception:  # code that a user wrote may raise anything
        return True
    return plain.dtype != wide.dtype or not torch.allclose(plain, wide, rtol=NEAR, atol=NEAR)
