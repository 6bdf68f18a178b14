"""Stacks that embed their tokens themselves: the layers in them are what is judged."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code, Inner, code_of
from attentest.targets.adapt.components import component_guessed, component_named, squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders.seen import Seen
from attentest.targets.adapt.encoders.stack import KEEP, EmbeddedStack
from attentest.targets.adapt.limits import demand_least_width
from attentest.targets.adapt.names import ROLES, SEGMENTS
from attentest.targets.adapt.parameters.building import DISTINCT, RATIOS
from attentest.targets.adapt.parameters.layers import is_feed
from attentest.targets.adapt.parameters.stacks import Layers, lists_of_layers
from attentest.targets.adapt.parameters.units import Unit, squeezed, units
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.constants.components import varied
from attentest_spec import Sizes

_BATCH, _LENGTH, _KEYS = 2, 5, 7
_SIDES = ("encoder", "decoder")


def token_encoder(thing: Any, reading: Reading, name: str = "") -> Code | None:
    """Return the class `thing` as the encoder that is in it; None for what is no token encoder.

    A class that says no other component is one if it holds one list of layers with one attention
    each, and a call needs one input. Raises Unclear where its layers cannot be called.
    """
    if not inspect.isclass(thing) or not issubclass(thing, nn.Module):
        return None
    own = name or thing.__name__
    guess = component_guessed(own)  # a head, as in "GPT2LMHeadModel", is no name for its layers
    said = reading.component or component_named(own) or ("" if guess == "generator" else guess)
    if said not in ("", "encoder", "model") or reading.component == "model":
        return None
    found = _Found.of(thing, reading)
    if found is None or (said != "encoder" and len(found.inputs) > 1):
        return None
    asked = replace(reading, component="encoder")
    if not found.tables and found.alone:
        return code_of(thing, asked, own) if said == "model" else None
    return found.code(thing, own)


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
    if not any("mask" in one and not _of_source(one) for one in masks):
        return None  # what hides later positions by itself, or nothing, is not read
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
        """Build `thing`; None where that fails, or where it holds no list or several."""
        try:
            with undisturbed():
                decodes = reading.component == "decoder"
                built = _buildable(varied(thing, _SIDES[decodes], reading))
                sizes = [DISTINCT.but(d_ff=one * DISTINCT.d_model) for one in RATIOS]
                for tried in [DISTINCT, *sizes]:
                    module = built(tried)
                    own = units(module, tried.heads)
                    every = lists_of_layers(own, tried)
                    lists = [
                        one for one in every if _has_one_attention(one.units, tried) != decodes
                    ]
                    asked = reading.component == "encoder"
                    if len(lists) == 1 and (asked or lists == every):
                        alone = lists == every
                        side = _SIDES[decodes]
                        return cls(module.eval(), built, tried, lists[0], own, alone, side)
        except Exception:  # code that a user wrote may raise anything: it is no encoder then
            return None
        return None

    @property
    def inputs(self) -> list[str]:
        """The inputs that a call must be given."""
        return _required(self.module)

    @property
    def tables(self) -> list[Unit]:
        """The tables of tokens outside of the layers."""
        rows = [self.sizes.source_vocabulary]
        rows += [self.sizes.target_vocabulary] * (self.component == "decoder")
        shapes = [{one, self.sizes.d_model} for one in rows]
        return [
            unit
            for unit in self.units
            if not self.layers.holds(unit)
            and unit.kind != "linear"
            and set(squeezed(unit.shape)) in shapes
        ]

    @property
    def path(self) -> str:
        """The path of the list."""
        return self.layers.start.rstrip(".")

    def code(self, thing: type[nn.Module], name: str) -> Code:
        """Return the stack in the class as code."""
        demand_least_width(self.built, self.sizes, name, "the class of its layers")
        alone = None if self.component == "decoder" else self._sub_module()
        inner, signature = alone or self._wrapped(name)
        called = inner(self.module, self.sizes)
        own = self.module.get_submodule(inner.path)
        parts = (thing.__doc__, inspect.getdoc(type(own).forward))
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
                f"it embeds its tokens itself: {where} is judged, with embedded input; embeddings "
                f"and positions are not"
                if self.tables
                else f"{where} is judged, and nothing else of it",
            ),
            inner=inner,
        )

    def _sub_module(self) -> tuple[Inner, None] | None:
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
            if not isinstance(module, nn.ModuleList | nn.ModuleDict) and (
                all(one.kind == "norm" for one in rest)
            ):
                return Inner(path), None
        return None

    def _embeds(self, path: str) -> bool:
        """Say whether the sub-module at `path` holds a table of tokens, if any does."""
        start = f"{path}." if path else ""
        return not self.tables or any(one.path.startswith(start) for one in self.tables)

    def _wrapped(self, name: str) -> tuple[Inner, inspect.Signature]:
        """Return how the layers are called by a call of what embeds the tokens."""
        names = self.path.split(".")
        paths = [".".join(names[:end]) for end in range(len(names) - 1, -1, -1)]
        path = next(
            one
            for one in paths
            if not isinstance(self.module.get_submodule(one), nn.ModuleList | nn.ModuleDict)
            and self._embeds(one)
        )
        layers = self.path.removeprefix(path).removeprefix(".")
        return _Wrapping(name, self.module.get_submodule(path), self).inner(path, layers)


def _buildable(built: Construction) -> Construction:
    """Return `built`, with a ratio of widths that is a whole number where it needs one."""
    try:
        built(DISTINCT)
    except Exception:  # code that a user wrote may raise anything
        return built.with_whole_ratio()
    return built


@dataclass(frozen=True)
class _Wrapping:
    """A module that embeds its tokens and calls the layers itself."""

    name: str
    module: nn.Module
    found: _Found
    parameters: Mapping[str, inspect.Parameter] = field(init=False)

    def __post_init__(self) -> None:
        """Read the signature."""
        parameters = inspect.signature(self.module.forward).parameters
        object.__setattr__(self, "parameters", parameters)

    def inner(self, path: str, layers: str) -> tuple[Inner, inspect.Signature]:
        """Return how the layers are called, and with which arguments."""
        tokens, zeros = self._tokens()
        options = {"layers": layers, "tokens": tokens, "zeros": tuple(zeros)}
        masks = [one for one in self.parameters if "mask" in squashed(one)]
        last = self._watched(options, masks)
        options |= last
        pads = "source_pad" in self.found.built.known
        inner = Inner(path, options, pads=pads)
        loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        kept = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for own, one in self.parameters.items()
            if own not in (tokens, *zeros) and one.kind not in loose
        ]
        kept.sort(key=lambda one: one.name != self.memory)
        if not masks and not self.memory and self._hides_pads(inner):
            kept.append(_named(KEEP, None))
        x = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return inner, inspect.Signature([x, *kept])

    @property
    def memory(self) -> str:
        """The argument of the memory of a decoder, "" for an encoder."""
        if self.found.component != "decoder":
            return ""
        own = _required(self.module)
        named = [one for one in own if squashed(one) in ROLES["memory"] and one not in own[:1]]
        return named[0] if named else own[-1]

    def _tokens(self) -> tuple[str, list[str]]:
        """Return the argument of the token ids, and those of other ids; Unclear for more."""
        own = list(self.parameters)
        named = [one for one in ROLES["tokens"] if one in map(squashed, own)]
        tokens = next((one for one in own if named and squashed(one) == named[0]), own[0])
        if self.memory:
            (tokens,) = (one for one in _required(self.module) if one != self.memory)
        zeros = [one for one in own if squashed(one) in SEGMENTS and one != tokens]
        given = (tokens, *zeros)
        rest = [one for one in _required(self.module) if one not in given]
        if rest and rest != [self.memory]:
            raise Unclear(
                f"{self.name} embeds its tokens itself, and nothing says what to give for "
                f"{' and '.join(rest)}. Add {' '.join(f'--give {one}=VALUE' for one in rest)} (in "
                f"Python: given={{NAME: VALUE}}), or name the class of its layers alone."
            )
        return tokens, [
            one for one in zeros if self.parameters[one].default is inspect.Parameter.empty
        ]

    def _watched(self, options: Mapping[str, Any], masks: Sequence[str]) -> dict[str, Any]:
        """Return the layout of the layers and the norm after them, as one call shows them."""
        ids = torch.randint(1, self.found.sizes.source_vocabulary - 1, (_BATCH, _LENGTH))
        given = {options["tokens"]: ids} | {one: torch.zeros_like(ids) for one in options["zeros"]}
        required = [one for one in masks if self._is_required(one)]
        if self.memory:
            given[self.memory] = torch.randn(_BATCH, _KEYS, self.found.sizes.d_model)
        failure = ""
        for mask, over_keys in zip(_masks(_LENGTH), _masks(_KEYS), strict=True):
            seen = Seen(self.module, options["layers"])
            try:
                with undisturbed(), seen:
                    own = {one: self._is_over_keys(one) for one in required}
                    self.module(**given, **{a: over_keys if b else mask for a, b in own.items()})
            except Exception as raised:  # code that a user wrote may raise anything
                failure = failure or f"{type(raised).__name__}: {raised}"
                continue
            shape = seen.shape
            width = self.found.sizes.d_model
            if seen.several:
                raise Unclear(
                    f"{self.name} embeds its tokens itself, and its first layer gets another "
                    f"tensor of the shape of its input, which nothing says how to give. Name the "
                    f"class of its layers alone."
                )
            if shape in ((_BATCH, _LENGTH, width), (_LENGTH, _BATCH, width)):
                first = shape[0] == _LENGTH
                return {"norm": seen.norm} | ({"sequence_first": True} if first else {})
            failure = "its layers are not called with (B, L, D)"
        raise Unclear(
            f"{self.name} embeds its tokens itself, and its layers ({self.found.path}) could not "
            f"be called through it: {failure}. Name the class of its layers alone, with --as "
            f"encoder, or its parts one by one."
        )

    def _is_over_keys(self, own: str) -> bool:
        return bool(self.memory) and _of_source(squashed(own))

    def _is_required(self, own: str) -> bool:
        return self.parameters[own].default is inspect.Parameter.empty

    def _hides_pads(self, inner: Inner) -> bool:
        """Say whether the pad id in the tokens changes what the layers make of one input."""
        x = torch.randn(_BATCH, _LENGTH, self.found.sizes.d_model)
        keep = torch.ones(_BATCH, _LENGTH, dtype=torch.bool)
        keep[:, 1] = False
        with undisturbed():
            stack = inner(self.found.module, self.found.sizes)
            assert isinstance(stack, EmbeddedStack)
            return not torch.equal(stack(x), stack(x, keep=keep))


def _of_source(mask: str) -> bool:
    """Say whether the name of a mask says that it hides entries of the memory."""
    return any(one in mask for one in ("src", "source", "mem", "enc", "cross"))


def _masks(keys_: int) -> Iterator[Tensor | None]:
    yield None
    keys = torch.ones(_BATCH, keys_, dtype=torch.bool)
    every = torch.ones(_LENGTH, keys_, dtype=torch.bool)
    for mask in (keys, keys[:, None, None], keys[:, None] & every, every):
        yield mask
        yield mask.float()
        yield ~mask


def _named(own: str, default: Any) -> inspect.Parameter:
    return inspect.Parameter(own, inspect.Parameter.KEYWORD_ONLY, default=default)


def _required(module: nn.Module) -> list[str]:
    """Return the arguments without a default that are neither masks nor other ids."""
    parameters = inspect.signature(module.forward).parameters.values()
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        one.name
        for one in parameters
        if one.default is one.empty
        and one.kind not in loose
        and "mask" not in squashed(one.name)
        and squashed(one.name) not in SEGMENTS
    ]


def _has_one_attention(layer: Sequence[Unit], sizes: Sizes) -> bool:
    """Say whether a layer holds the matrices of one attention, and not of two."""
    rest = [one for one in layer if one.kind != "norm" and not is_feed(one, sizes)]
    numbers = sum(prod(one.shape) * (sizes.heads if one.per_head else 1) for one in rest)
    return numbers < 6 * sizes.d_model**2
