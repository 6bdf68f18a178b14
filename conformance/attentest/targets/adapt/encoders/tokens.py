"""Stacks that embed their tokens themselves: the layers in them are what is judged."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import nn

from attentest.results.assumptions import EMBEDS
from attentest.targets.adapt.code import Code, Inner, code_of
from attentest.targets.adapt.components import (
    component_guessed,
    component_named,
    component_suggested,
    squashed,
)
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders import default_sizes
from attentest.targets.adapt.encoders.inputs.arguments import of_source, sequences
from attentest.targets.adapt.encoders.inputs.callers import words_of_callers
from attentest.targets.adapt.encoders.inputs.makers import class_of, is_maker, maker_of
from attentest.targets.adapt.encoders.inputs.measured import with_inputs
from attentest.targets.adapt.encoders.inputs.open_lengths import demand_open
from attentest.targets.adapt.encoders.inputs.positions import added_at
from attentest.targets.adapt.encoders.inputs.tables import demand_registered, tables_of_tokens
from attentest.targets.adapt.encoders.leaving import options_entering, options_of_output
from attentest.targets.adapt.encoders.mixing import (
    Mixed,
    as_taken,
    demand_separate_samples,
    mixture,
)
from attentest.targets.adapt.encoders.pooling import pooling_of
from attentest.targets.adapt.encoders.rows.reading import OfImages, code_or_rows, of_images, of_rows
from attentest.targets.adapt.encoders.rows.shapes import takes_images
from attentest.targets.adapt.encoders.scalar_norms import with_columns
from attentest.targets.adapt.encoders.seen import Uncalled
from attentest.targets.adapt.encoders.shared_layers import (
    has_one_attention,
    with_one_layer,
    with_own_layers,
)
from attentest.targets.adapt.encoders.sizes.widths import with_widths
from attentest.targets.adapt.encoders.sizes.written import with_sizes_of_code, with_written_sizes
from attentest.targets.adapt.encoders.wrapping import Wrapping, is_list, path_of
from attentest.targets.adapt.limits import Narrow, demand_least_width
from attentest.targets.adapt.parameters.building import DISTINCT, RATIOS, inner_widths
from attentest.targets.adapt.parameters.stacks import Layers, lists_of_layers
from attentest.targets.adapt.parameters.units import Unit, units
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.comments import words_on
from attentest_spec import Sizes
from attentest_spec.choices import Value

_SIDES = ("encoder", "decoder")
_IN_LAYERS = (
    *("generator", "layer_norm", "rms_norm", "embedding", "attention", "multi_head_attention"),
    *("feed_forward", "positional_encoding"),
)
"""Components that a part of the name of a stack may say, as in "PreLayerNormModel"."""


def stack_of(thing: Any, reading: Reading, name: str) -> Code | None:
    """Return the stack in a class that embeds its tokens, None for any other.

    Raises Unclear where its layers cannot be called.
    """
    found = token_encoder(thing, reading, name) or token_decoder(thing, reading, name)
    return found if found is None or reading.strict else with_columns(found)


def token_encoder(thing: Any, reading: Reading, name: str = "") -> Code | None:
    """Return the class `thing` as the encoder that is in it; None for what is no token encoder.

    A class that says no other component is one if it holds one list of layers with one attention
    each, and a call needs one input. Raises Unclear where its layers cannot be called.
    """
    own = name or getattr(thing, "__name__", "")
    if not is_maker(thing, own) and not (inspect.isclass(thing) and issubclass(thing, nn.Module)):
        return None
    guess = component_guessed(own)  # a head, as in "GPT2LMHeadModel", is no name for its layers
    said = reading.component or component_named(own) or ("" if guess in _IN_LAYERS else guess)
    if said not in ("", "encoder", "model") or reading.component == "model":
        return None
    found = _Found.of(thing, reading)
    if found is None:
        demand_registered(thing, own, reading)
    if found is None and not said and not reading.given:
        question = default_sizes.switch_needed(thing, replace(reading, component="encoder"))
        for one in question.attempts if question is not None else ():
            other = _Found.of(thing, one.added(reading))
            is_one = other is not None and bool(other.tables) and len(other.inputs) < 2
            if question is not None and is_one:
                raise question
    is_open = (found is None or not found.tables) and not reading.given
    if is_open and (maker := maker_of(thing)) is not None:
        made = token_encoder(maker, replace(reading, component="encoder"), maker.__name__)
        if made is not None and class_of(made.construction) is thing:
            return made
    if found is None or (said != "encoder" and len(found.inputs) > 1):
        return None
    if not (said or found.tables or guess in ("", "generator")):
        return None  # without a table of tokens, it is that part itself
    asked = replace(reading, component="encoder")
    if not found.tables and found.alone and (images := of_images(found, thing, own)):
        return images
    is_model = "model" in (said, component_suggested(own)) or own.lower().endswith("vit")
    if not found.tables and found.alone and is_model and takes_images(thing):
        raise OfImages.by(own, found.layer)
    if not found.tables and found.alone:
        if said == "model":
            return code_of(thing, asked, own)
        return found.of_features(thing, own) or of_rows(found, thing, own)
    try:
        return found.code(thing, own)
    except (Uncalled, Narrow) as question:
        for sized in with_sizes_of_code(thing, asked, found.built):
            with suppress(Unclear):
                if (other := _Found._of(sized, asked)) is not None:
                    return code_or_rows(other, thing, own)
        fixed = getattr(question, "lengths", None)
        if fixed is not None and (rows := of_rows(found, thing, own, fixed)) is not None:
            return rows
        raise


def token_decoder(thing: Any, reading: Reading, name: str = "") -> Code | None:
    """Return the class `thing` as the decoder that is in it; None for what is no token decoder.

    A decoder is one if it holds one list of layers with two attentions each, a table of tokens,
    and no input but tokens, a memory and masks. Raises Unclear where its layers cannot be called.
    """
    if not inspect.isclass(thing) or not issubclass(thing, nn.Module):
        return None
    own = name or thing.__name__
    said = reading.component or component_named(own) or component_guessed(own)
    if said != "decoder":
        return None
    found = _Found.of(thing, replace(reading, component=said))
    if found is None or not found.tables or len(found.inputs) != 2:
        return None
    masks = [squashed(one) for one in inspect.signature(thing.forward).parameters]
    if not any("mask" in one and not of_source(one) for one in masks):
        raise Unclear(
            f"{own} embeds its tokens itself and takes no mask of the target: what hides later "
            f"steps inside of a decoder is read in a whole model alone. Name the class of its "
            f"layers, {found.layer}, or the model that it is part of."
        )
    return found.code(thing, own)


@dataclass(frozen=True)
class _Found:
    """A class that was built, and the list of layers with one attention; `alone` if no other.

    The layers of a `component` "decoder" have two.
    """

    module: nn.Module
    built: Construction
    sizes: Sizes
    layers: Layers
    units: Sequence[Unit]
    alone: bool
    component: str = "encoder"

    @classmethod
    def of(cls, thing: type[nn.Module], reading: Reading) -> "_Found | None":
        """Build `thing`; None where that fails, or where it holds no list or several.

        One layer for all depths is a list of them too, where assumptions are allowed.
        """
        side = _SIDES[reading.component == "decoder"]
        try:
            with undisturbed():
                built = with_inputs(default_sizes.built_of(thing, side, reading), reading)
        except Exception:  # code that a user wrote may raise anything: it is no encoder then
            if reading.strict:
                return None
            return cls._of_sizes(with_widths(thing, side, reading), reading)
        if (found := cls._of(built, reading)) is not None or reading.strict:
            return found
        shared = (cls._of(one, reading) for one in with_own_layers(built))
        if (once := next(filter(None, shared), None)) is not None:
            return once
        single = (cls._of(one, reading) for one in with_one_layer(built))
        if (only := next((one for one in single if one and one.tables), None)) is not None:
            return only
        named = default_sizes.with_hidden_width(thing, side, reading, built)
        left = default_sizes.with_size_left(thing, side, reading, built)
        tried = (default_sizes.buildable(one) for one in chain(named, left))
        sized = [one for each in tried if (one := cls._of(each, reading)) is not None]
        if len(sized) == 1:
            return sized[0]
        written = with_written_sizes(thing, reading, built)
        return cls._of_sizes(chain(with_widths(thing, side, reading), written), reading)

    @classmethod
    def _of_sizes(cls, tried: Iterator[Construction], reading: Reading) -> "_Found | None":
        """Return the first of `tried` that has layers and a table of tokens, None for no such."""
        every = (cls._of(one, reading) for one in tried)
        return next((one for one in every if one is not None and one.tables), None)

    @classmethod
    def _of(cls, built: Construction, reading: Reading) -> "_Found | None":
        """Return what is `built`; None where that fails, or where it holds no list or several."""
        try:
            with undisturbed():
                decodes = reading.component == "decoder"
                widths = [one * DISTINCT.d_model for one in RATIOS]
                widths += inner_widths(built(DISTINCT), DISTINCT)
                first = DISTINCT.but(layers=1) if built.has_one_layer else DISTINCT
                for tried in [first, *(first.but(d_ff=one) for one in dict.fromkeys(widths))]:
                    module = built(tried)
                    own = units(module, tried.heads)
                    every = lists_of_layers(own, tried)
                    lists = [one for one in every if has_one_attention(one.units, tried) != decodes]
                    asked = reading.component == "encoder"
                    named = lists and "." in lists[0].start
                    if len(lists) == 1 and named and (asked or lists == every):
                        alone = lists == every
                        side = _SIDES[decodes]
                        return cls(module.eval(), built, tried, lists[0], own, alone, side)
        except Exception:  # code that a user wrote may raise anything: it is no encoder then
            return None
        return None

    @property
    def inputs(self) -> list[str]:
        """The inputs that a call must be given."""
        return sequences(self.module, self.component)

    @property
    def tables(self) -> list[Unit]:
        """The tables of tokens outside of the layers, which may have some rows more."""
        return tables_of_tokens(self.units, self.layers, self.sizes, self.component)

    @property
    def layer(self) -> str:
        """The name of the class of its layers."""
        return type(self.module.get_submodule(self.layers.first.rstrip("."))).__name__

    @property
    def path(self) -> str:
        """The path of the module that holds the layers, which may be numbered as block0."""
        return self.layers.start.rpartition(".")[0]

    def code(self, thing: type[nn.Module], name: str) -> Code:
        """Return the stack in the class as code."""
        demand_least_width(self.built, self.sizes, name, "the class of its layers")
        alone = None if self.component == "decoder" else self.sub_module()
        if alone and self.tables:
            around, path = self._wrapping(name), alone[0].path
            alone = None if around.changes_input(path) or around.gives_more(path) else alone
        if alone is None:
            return self.code_of(thing, name, *as_taken(self._wrapping(name)).inner())
        masked = as_taken(self._wrapping(name)).masked() if self.tables else None
        if masked is not None:
            demand_open(self._wrapping(name), *masked)
        plain = self.code_of(thing, name, replace(alone[0], masked=bool(masked)), None)
        return replace(self.code_of(thing, name, *masked), otherwise=plain) if masked else plain

    def of_features(self, thing: type[nn.Module], name: str) -> Code | None:
        """Return the stack in a class that maps the vectors it takes to the width of its layers.

        None for a class that does not.
        """
        width, modules = self.sizes.d_model, dict(self.module.named_modules())
        mapped = [
            one.path
            for one in self.units
            if one.kind == "linear" and not self.layers.holds(one) and one.shape[0] == width
            if isinstance(modules.get(one.path), nn.Linear)
        ]
        for path in mapped:
            try:
                around = self._wrapping(name, [path])
                inside = path.removeprefix(f"{around.path}." * bool(around.path))
                wrapping = replace(around, features=inside)
                if wrapping.maps_input():
                    demand_separate_samples(wrapping, name)
                    code = self.code_of(thing, name, *wrapping.inner())
                    return replace(code, entering=partial(options_of_output, wrapping))
            except Mixed:
                raise
            except Unclear:  # it is no matrix of the input
                continue
        return None

    def with_positions(self, number: int) -> "_Found | None":
        """Return the class with so many positions, None where it is built for no number of them."""
        built = self.built.with_positions(number)
        return None if built is self.built else self._made(built)

    def with_columns(self, columns: int, positions: int = 0) -> "Iterator[_Found]":
        """Yield the class with each of two widths as the number of columns of a patch of images."""
        given = self.built.with_positions(positions) if positions else self.built
        for one in given.with_columns(columns):
            if (found := self._made(one)) is not None:
                yield found

    def _made(self, built: Construction) -> "_Found | None":
        """Return the class with another construction, None where that fails."""
        try:
            with undisturbed():
                return replace(self, built=built, module=built(self.sizes).eval())
        except Exception:  # code that a user wrote may raise anything
            return None

    def code_of(
        self, thing: type[nn.Module], name: str, inner: Inner, signature: inspect.Signature | None
    ) -> Code:
        """Return `inner` as code, called with `signature` or with its own."""
        called = inner(self.module, self.sizes)
        own = self.module.get_submodule(inner.path)
        is_torch = type(own).__module__.startswith("torch.")
        words = inspect.getdoc if is_torch else words_on
        parts = (thing.__doc__, words(type(own).forward), words_of_callers(thing))
        where = inner.path or self.path
        return Code(
            name,
            self.component,
            thing,
            lambda sizes: inner(self.built(inner.around(sizes)), sizes),
            signature or inspect.signature(called.forward),
            "\n".join(filter(None, parts)),
            self.built,
            (
                f"built as {name}({self.built.words})",
                f"{EMBEDS}: {where} is judged, with embedded input"
                if self.tables
                else f"{where} is judged, and nothing else of it",
                *self._mixed(name),
            ),
            inner=inner,
            entering=partial(self.entering, name) if self.tables else None,
            leaving=partial(self._leaving, name) if self.tables else None,
        )

    def _mixed(self, name: str) -> list[str]:
        """Return what is said of samples that depend on each other, nothing for others."""
        has_texts = self.component == "encoder" and bool(self.tables)
        return mixture(self._wrapping(name), name) if has_texts else []

    def entering(self, name: str, length: int = 0) -> Mapping[str, Value]:
        """Return the options of the embedding and the positions, in double precision if it can.

        A `length` is that of all sequences.
        """

        def wrapped(precision: torch.dtype) -> Wrapping:
            with undisturbed():
                whole = self.built(Inner.around(self.sizes)).to(precision).eval()
            return replace(self._wrapping(name), whole=whole)

        own = [one.weight for one in self.tables]
        added = partial(added_at, self._wrapping(name), self.built, own, length)
        return options_entering(wrapped, own, length, heads=self._has_heads, added=added)

    def _leaving(self, name: str) -> str:
        """Return what is said of what comes behind the layers."""
        with undisturbed():
            whole = self.built(Inner.around(self.sizes)).double().eval()
        pads = "source_pad" in self.built.known
        wrapping = Wrapping(name, whole, self.sizes, self.component, "", self.path, pads)
        return pooling_of(wrapping, self.sizes.source_pad if pads else 0, heads=self._has_heads)

    @property
    def _has_heads(self) -> bool:
        """Whether it holds matrices outside of its layers that are no tables."""
        rest = (one for one in self.units if not self.layers.holds(one))
        return any(one.kind in ("linear", "packed") for one in rest)

    def sub_module(self) -> tuple[Inner, None] | None:
        """Return the outermost sub-module with the layers, at most a norm, and no more."""
        names = self.path.split(".")
        for end in range(1, len(names) + 1):
            path = ".".join(names[:end])
            module = self.module.get_submodule(path)
            rest = [
                one
                for one in self.units
                if one.path.startswith(f"{path}.") and not self.layers.holds(one)
            ]
            if not is_list(module, self.sizes.d_model) and all(one.kind == "norm" for one in rest):
                return Inner(path), None
        return None

    def _wrapping(self, name: str, held: Sequence[str] = ()) -> Wrapping:
        """Return what embeds the tokens, or holds one of the paths `held`, and calls the layers."""
        path = path_of(self.module, self.path, [*held, *(one.path for one in self.tables)])
        layers = self.path.removeprefix(path).removeprefix(".")
        pads = "source_pad" in self.built.known
        return Wrapping(name, self.module, self.sizes, self.component, path, layers, pads)
