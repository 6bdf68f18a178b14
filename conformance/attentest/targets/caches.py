"""Classes that keep keys and values, judged inside a correct model that decodes with them.

A class with a method that takes the keys and the values of new tokens and returns those of all is
read as the cache of `cached_decoding`: everything around it is a reference model of the suite.
What the method returns for a few tokens says which axis the tokens are on, and proves the reading.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from attentest.faults.reference_models import DECLARED, Kept, Plain
from attentest.faults.reference_models.hooks.cache import Pair
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import words
from attentest.targets.adapt.reading import Reading
from attentest_spec import Choices, Limits, Sizes
from attentest_spec.torch import DTYPES, TorchBackend, cached_decoding

COMPONENT = "cached_decoding"

_UPDATES = ("update", "append", "extend", "add", "forward", "__call__")
_RESETS = ("reset", "clear", "empty", "reset_parameters")
_REORDERS = ("reorder", "reorder_cache", "reindex", "select", "index_select")
_KEYS = words("k key keys newk newkey newkeys knew keynew kval keystates xk kt k1 kcur")
_VALUES = words("v value values newv newvalue newvalues vnew valuenew vval valuestates xv vt v1")
_LAYER = words("layer layeridx layerindex layerid idx i layernum l")
_POSITION = words("startpos start pos position inputpos offset cacheposition curpos")
SIZE_NAMES: Mapping[str, frozenset[str]] = {
    "batch": frozenset(words("batch batchsize maxbatch maxbatchsize bsz b bs")),
    "length": frozenset(
        words("maxlen maxlength maxseqlen maxseqlength length blocksize contextlength maxtokens")
    ),
    "heads": frozenset(
        words("heads nheads numheads nhead numkvheads nkvheads h kvheads numkeyvalueheads")
    ),
    "width": frozenset(words("headdim headsize headwidth dhead dk dim e")),
    "layers": frozenset(words("layers nlayers numlayers nlayer depth")),
    "dtype": frozenset(words("dtype")),
    "device": frozenset(words("device")),
}
"""The arguments of the constructor: what each is given, by its name."""

_TOKENS = {"BHTE": 2, "BTHE": 1}
"""The axis of the tokens in each layout."""


@dataclass(frozen=True)
class KeptPairs:
    """The conventions of one class: its method, its arguments, and the layout of keys."""

    thing: type
    method: str
    key: str
    value: str
    layer: str = ""
    position: str = ""
    built: Mapping[str, str] = field(default_factory=dict)
    layout: str = "BHTE"
    reset: str = ""

    @property
    def per_layer(self) -> bool:
        """Whether every layer has an object of its own."""
        return not self.layer

    def make(self, values: Mapping[str, Any]) -> Any:
        """Return a cache for a batch; it has been used and reset where it can be."""
        made = self.thing(**{own: values[size] for own, size in self.built.items()})
        if self.reset:
            shape = values["batch"], values["heads"], 1, values["width"]
            once = torch.ones(shape, dtype=values["dtype"], device=values["device"])
            self.update(made, (once, once), 0, 0)
            getattr(made, self.reset)()
        return made

    def update(self, made: Any, new: Pair, layer: int, before: int) -> Pair:
        """Give keys and values (B, H, N, E) of new tokens to a cache, and return all."""
        given: dict[str, Any] = {self.key: self._turned(new[0]), self.value: self._turned(new[1])}
        if self.layer:
            given[self.layer] = layer
        if self.position:
            given[self.position] = before
        found = getattr(made, self.method)(**given)
        return self._turned(found[0]), self._turned(found[1])

    def _turned(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2) if self.layout == "BTHE" else x


def is_cache(thing: Any, reading: Reading, name: str) -> bool:
    """Say whether `thing` is taken for a class that keeps keys and values."""
    if reading.component not in ("", COMPONENT) or not inspect.isclass(thing):
        return False
    own = squashed(name or thing.__name__)
    return "cache" in own and _form(thing) is not None


def proves_itself(thing: Any, name: str) -> bool:
    """Say whether `thing` is such a class, and what it returns proves how it is read."""
    form = _form(thing) if is_cache(thing, Reading(), name) else None
    return form is not None and _proved(form) is not None


def drops_tokens(thing: Any, name: str) -> bool:
    """Say whether `thing` is such a class, and returns fewer tokens than it is given first."""
    form = _form(thing) if is_cache(thing, Reading(), name) else None
    return form is not None and any(_drops(replace(form, layout=one)) for one in _TOKENS)


def _drops(form: KeptPairs) -> bool:
    """Say whether the first keys or values come back as the last, or the first, of them alone."""
    new = next(_news(torch.float64))
    try:
        found = form.update(form.make(_values(torch.float64)), new, 0, 0)
        return any(
            one.shape[2] == 1
            and any(torch.equal(one, of[:, :, at]) for at in (slice(1), slice(1, 2)))
            for one, of in zip(found, new, strict=True)
        )
    except Exception:  # code that a user wrote may raise anything
        return False


def adapt_cache(thing: type, reading: Reading, name: str) -> TorchBackend | None:
    """Return a cache as a backend; None where what it returns proves no reading."""
    form = _form(thing)
    proved = None if form is None else _proved(form)
    if proved is None:
        return None
    kept, precisions = proved
    choices = {**DECLARED, "cache_update": "in-place", **reading.choices}
    reorders = any(_own(thing, one) for one in _REORDERS)
    model = _model(kept)
    complete = Choices.of(choices)

    def build(sizes: Sizes) -> Any:
        hooks = model(sizes, complete)
        hooks.check_sizes()
        return hooks.make_model()

    recipe = cached_decoding(
        build,
        start=lambda built, source: built.how.start_cache(built, source),
        step=lambda built, cache, tokens: built.how.step_cache(built, cache, tokens),
        reorder=(lambda built, cache, rows: built.how.reorder_cache(built, cache, rows))
        if reorders
        else None,
        parameters=Plain.tables["model"],
    )
    axes = ", ".join("BHLE" if kept.layout == "BHTE" else "BLHE")
    return AdaptedCache(
        name=name,
        title=f"{name}, read as the cache of {COMPONENT}",
        recipes={COMPONENT: recipe},
        choices=choices,
        limits=Limits(precisions=precisions),
        summary=(
            f"{name}.{kept.method} called ({kept.key}, {kept.value}) with keys ({axes}), "
            f"{'one object for each layer' if kept.per_layer else 'one object for all layers'}; "
            f"everything around it is a reference model"
        ),
        understood=(f"{name} is judged as the cache of {COMPONENT}",),
    )


@dataclass(frozen=True, kw_only=True)
class AdaptedCache(TorchBackend):
    """A backend made of a cache; see :class:`~attentest.targets.adapt.adaptation.Adapted`."""

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""


def _own(thing: type, method: str) -> bool:
    """Say whether `thing` has a method of its own, and not of torch's modules."""
    return any(method in vars(one) for one in _classes(thing))


def _classes(thing: type) -> list[type]:
    """Return a class and those above it, other than those of Python and torch."""
    return [one for one in thing.__mro__ if one not in (object, torch.nn.Module)]


def _form(thing: type) -> KeptPairs | None:
    """Return how a class is called by its names; None where they do not say it."""
    for method in _UPDATES:
        if not _own(thing, method):
            continue
        try:
            own = list(inspect.signature(getattr(thing, method)).parameters.values())[1:]
            made = list(inspect.signature(thing).parameters.values())
        except (TypeError, ValueError):
            return None
        roles = _roles(own)
        built = {
            one.name: size
            for one in made
            for size, names in SIZE_NAMES.items()
            if squashed(one.name) in names
        }
        unknown = [one for one in made if one.default is one.empty and one.name not in built]
        if {"key", "value"} <= roles.keys() and not _missing(own, roles) and not _plain(unknown):
            return KeptPairs(thing, method, **roles, built=built)
    return None


def _roles(own: list[inspect.Parameter]) -> dict[str, str]:
    kinds = {"key": _KEYS, "value": _VALUES, "layer": _LAYER, "position": _POSITION}
    return {
        role: one.name
        for role, names in kinds.items()
        for one in own
        if squashed(one.name) in names
    }


def _missing(own: list[inspect.Parameter], roles: Mapping[str, str]) -> bool:
    return bool(
        _plain([one for one in own if one.default is one.empty and one.name not in roles.values()])
    )


def _plain(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one for one in parameters if one.kind not in variadic]


_BATCH, _HEADS, _WIDTH = 2, 3, 5
_CHUNKS = (2, 1, 4)


def _proved(form: KeptPairs) -> tuple[KeptPairs, tuple[str, ...]] | None:
    """Return the form with its layout, and the precisions it keeps; None where nothing shows."""
    for layout in _TOKENS:
        found = replace(form, layout=layout)
        kept = tuple(name for name, dtype in DTYPES.items() if _joins(found, dtype))
        if kept:
            return replace(found, reset=_reset(found)), kept
    return None


def _reset(form: KeptPairs) -> str:
    """Return the method that empties a cache and takes nothing, "" where there is none."""
    for method in _RESETS:
        if _own(form.thing, method):
            try:
                replace(form, reset=method).make(_values(torch.float64))
            except Exception:  # code that a user wrote may raise anything
                continue
            return method
    return ""


def _values(dtype: torch.dtype) -> dict[str, Any]:
    """Return the sizes of the cache that is tried."""
    return {
        "batch": _BATCH,
        "heads": _HEADS,
        "width": _WIDTH,
        "length": 16,
        "layers": 2,
        "dtype": dtype,
        "device": torch.device("cpu"),
    }


def _joins(form: KeptPairs, dtype: torch.dtype) -> bool:
    """Say whether the first keys come back as they are, and later ones make them longer."""
    try:
        made, before = form.make(_values(dtype)), 0
        for number, new in enumerate(_news(dtype)):
            length = before + new[0].shape[2]
            found = form.update(made, new, 0, before)
            shape = (_BATCH, _HEADS, length, _WIDTH)
            if any(tuple(one.shape) != shape or one.dtype != dtype for one in found):
                return False
            if not number and not all(map(torch.equal, found, new)):
                return False
            before = length
    except Exception:  # code that a user wrote may raise anything
        return False
    return True


def _news(dtype: torch.dtype) -> Iterator[Pair]:
    generator = torch.Generator().manual_seed(5)
    for length in _CHUNKS:
        shape = (_BATCH, _HEADS, length, _WIDTH)
        yield tuple(torch.randn(shape, generator=generator).to(dtype) for _ in range(2))  # type: ignore[misc]


def _model(form: KeptPairs) -> type[Plain]:
    """Return the reference model that keeps its keys and values in caches of `form`."""

    class Keeping(Plain):
        """The plain reference model with the user's cache."""

        def empty_entries(self, layers: int, memory: Tensor) -> list[Any]:
            """Return one object for each layer, or the same one for all."""
            values = {
                "batch": len(memory),
                "heads": self.sizes.heads,
                "width": self.head_width(),
                "length": self.sizes.max_length,
                "layers": layers,
                "dtype": memory.dtype,
                "device": memory.device,
            }
            count = layers if form.per_layer else 1
            made = [form.make(values) for _ in range(count)]
            return made if form.per_layer else made * layers

        def copy_entries(self, own: list[Any]) -> list[Any]:
            """Return the same objects: a step changes them."""
            return list(own)

        def extend_entry(self, cache: Kept, number: int, new: Pair) -> Pair:
            """Keep new keys and values (B, H, N, E), and return all that are kept."""
            before = int(cache.tokens.shape[1]) - new[0].shape[2]
            return form.update(cache.own[number], new, number, before)

        def reorder_entries(self, own: list[Any], origin: Tensor) -> list[Any]:
            """Return the objects with the rows `origin` (B,)."""
            method = next(one for one in _REORDERS if _own(form.thing, one))
            for one in {id(one): one for one in own}.values():
                getattr(one, method)(origin)
            return own

    return Keeping


__all__ = ["COMPONENT", "adapt_cache", "drops_tokens", "is_cache", "proves_itself"]
