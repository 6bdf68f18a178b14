"""The cache of a decoder-only model as the source of functions that start, continue and reorder."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import words
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.caches import SIZE_NAMES
from attentest.targets.language_models.argument_names import (
    STARTS,
    caches_named,
    counts,
    takes_more,
)
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.steps.sources import (
    JOINED,
    JOINED_WORDS,
    METHOD,
    ROWS,
    START,
    given_input,
    required_mask,
)
from attentest.targets.language_models.surrounded.modules import signature_of

_FLAGS = words("usecache returncache returnkv returnpast usekvcache returnkvcache returnpresent")
_SWITCHES = (*_FLAGS, *words("caching withcache cached usekv"))
_EMPTIES = re.compile(r"(?i)(reset|clear|empty|flush)(_?(kv)?_?(caches?|kv|state))?$")
"""Names of methods that empty the cache that a model holds."""
_PLACES = re.compile(r"(?i)pos|offset|start|step|index|idx_|before|len")
_MAKES = tuple(words("make init new empty create allocate alloc"))
_RESULTS = ("past", "cache", "present", "kv")
"""Parts of names of results that hold a cache."""

_CODE: Mapping[str, str] = {
    "batch": "rows",
    "length": "sizes.max_length",
    "heads": "(sizes.kv_heads or sizes.heads)",
    "width": "sizes.d_model // sizes.heads",
    "layers": "sizes.layers",
    "dtype": "next(model.parameters()).dtype",
    "device": "next(model.parameters()).device",
}
MADE_OF: Mapping[str, str] = {
    name: _CODE[size] for size, names in SIZE_NAMES.items() for name in names
}
"""The expressions of the arguments of a class of caches, or of a method that makes one."""

_PLAIN = ("[]", "{}", "[None] * sizes.layers", "[{} for _ in range(sizes.layers)]")


@dataclass(frozen=True)
class Cached:
    """One way to continue a text.

    `argument` takes the cache and `start` is the expression of an empty one. `part` is the place
    of the cache in the result, None where a step changes the one that it is given, and `attribute`
    says that it is an attribute. `logits` and `of_attribute` say the same of the logits, where the
    result holds them with the cache alone. `flag` is the argument that asks for it, `counted` the
    one with the number of tokens before. `places` says that positions are given in every step,
    `positions` that they may be, and `mask` is the expression of the mask that a step takes, "" for
    none. `single` says that a step takes one token, and `reorder` how rows are exchanged: "rows",
    the name of a method of the cache, or "". Without an `argument` the model holds the cache, which
    is given no more tokens than fit where it is `bounded`. `raising` are precisions of a model in
    which a step raises. `emptied` is the call of its own that a model needs before each text.
    """

    argument: str
    start: str = "None"
    part: int | str | None = None
    attribute: bool = False
    logits: int | str | None = None
    of_attribute: bool = False
    flag: str = ""
    counted: str = ""
    places: bool = False
    mask: str = ""
    positions: bool = False
    single: bool = False
    reorder: str = ""
    bounded: bool = False
    raising: tuple[str, ...] = ()
    joined: int | None = None
    emptied: str = ""

    @property
    def in_place(self) -> bool:
        """Whether a step changes the cache that it is given."""
        return self.part is None

    @property
    def words(self) -> str:
        """The reading in one phrase."""
        begun = f"begun as {self.start}" if self.start != "None" else "begun without one"
        taken = "changed by each step" if self.in_place else f"returned as {self.part!r}"
        phrases = [f"cache={self.argument}, {begun}, {taken}"]
        if not self.argument:
            phrases = [f"cache held by the model itself{self._emptied}"]
        phrases += [f"emptied by {self.emptied}"] * bool(self.emptied)
        phrases += [f"tokens before={self.counted}"] * bool(self.counted)
        phrases += ["positions of the new tokens given in each step"] * self.places
        phrases += [JOINED_WORDS] * (self.joined is not None)
        phrases += ["one new token at a time after the first ones"] * self.single
        return ", ".join(phrases)

    @property
    def _emptied(self) -> str:
        """The phrase on a held cache whose model takes no number of tokens, "" for any other."""
        return "" if self.counted else f", with {self.flag}=True, and emptied by {self.start}"

    def source(self, call: Call) -> str:
        """Return the source of the functions of the recipe."""
        joined = [JOINED.replace("AXIS", str(self.joined))] * (self.joined is not None)
        first = f"    {self.emptied}\n" * bool(self.emptied)
        start = START.replace("    return EMPTY", f"{first}    return {self.start}")
        return "\n\n".join([start, *joined, self._step(call), *self._reorder()])

    def _step(self, call: Call) -> str:
        rows = [
            "def step(model, past, tokens, mask, positions):",
            '    """Return the logits (B, N, V) of new tokens (B, N), and the cache with them."""',
            "    kept, before = past",
        ]
        for one in self.raising:
            rows += [
                f"    if next(model.parameters()).dtype == torch.{one}:",
                f'        raise Unsupported("its cache is of another precision than {one}")',
            ]
        if self.single:
            rows += [
                "    if before and tokens.shape[1] > 1:",
                '        raise Unsupported("it takes one token at a time")',
            ]
        if self.bounded:
            rows += [
                "    if before + tokens.shape[1] > model.sizes_of_caches.max_length:",
                '        raise Unsupported("its cache holds no more tokens")',
            ]
        fixed = {own: value for own, value in call.fixed.items() if own != self.argument}
        given = [f'"{call.tokens}": tokens']
        given += [f'"{self.argument}": kept'] * bool(self.argument)
        given += [f'"{self.flag}": True'] * bool(self.flag)
        given += [f'"{call.labels}": tokens.contiguous()'] * bool(call.labels)
        given += [f'"{self.counted}": before'] * bool(self.counted)
        held = (self.flag, self.counted)
        given += [f'"{own}": {value!r}' for own, value in fixed.items() if own not in held]
        rows += [f"    given = {{{', '.join(given)}}}"]
        if self.places:
            rows += [
                "    if positions is None:",
                "        new = torch.arange(before, before + tokens.shape[1])",
                "        positions = new.to(tokens.device).expand_as(tokens)",
            ]
        rows += required_mask(call)
        form = call.held(call.mask, call.mask_form.replace("mask", self.mask))
        rows += given_input("mask", call.mask if self.mask else "", form)
        taken = call.positions if self.positions or self.places else ""
        rows += given_input("positions", taken, call.position_form)
        rows += ["    output = model(**given)"]
        if not self.in_place:
            new = f"output{self._at(self.part, self.attribute)}"
            rows += [f"    kept = {new if self.joined is None else f'joined(kept, {new})'}"]
        place = (call.part, call.attribute) if self.logits is None else self._of_logits
        logits = "" if place[0] is None else self._at(*place)
        rows += [f"    return output{logits}, (kept, before + tokens.shape[1])"]
        return "\n".join(rows) + "\n"

    @property
    def _of_logits(self) -> tuple[int | str | None, bool]:
        return self.logits, self.of_attribute

    @staticmethod
    def _at(part: int | str | None, attribute: bool) -> str:
        return f".{part}" if attribute else f"[{part!r}]"

    def _reorder(self) -> Iterator[str]:
        if self.reorder == "rows":
            yield ROWS
        elif self.reorder:
            yield METHOD.format(self.reorder)

    @property
    def recipe(self) -> str:
        """The expression of the recipe, by the names of the written functions."""
        last = "reorder=reorder, " if self.reorder else ""
        return (
            f"cached_language_model(build_cached, start=start, step=step, {last}"
            f"parameters=PARAMETERS)"
        )


def cache_argument(model: nn.Module) -> str:
    """Return the argument of a model that takes a cache, "" for none."""
    return next(iter(caches_named(signature_of(model).parameters)), "")


def held_by_model(model: nn.Module) -> Iterator[Cached]:
    """Yield the ways in which a model that holds its cache itself may be continued.

    Its call takes the number of tokens before.
    """
    named = {squashed(one): one for one in signature_of(model).parameters}
    counts = [named[one] for one in STARTS if one in named]
    flags = [named[one] for one in _FLAGS if one in named]
    yield from (Cached("", counted=counts[0], flag=flag) for flag in ("", *flags) if counts)


def held_by_switch(model: nn.Module) -> Iterator[Cached]:
    """Yield the ways in which a model may be continued that holds its cache and counts its tokens.

    A switch of its call, which is off by default, says that it does, and a method empties it. No
    other argument may say where the new tokens are.
    """
    own = signature_of(model).parameters
    flags = [name for name, one in own.items() if squashed(name) in _SWITCHES and not one.default]
    if counts(model) or takes_more(model) or any(map(_PLACES.search, own)):
        return
    for flag, call in product(flags, emptying_calls(model)):
        yield Cached("", call, flag=flag)


def emptying_calls(model: nn.Module) -> Iterator[str]:
    """Yield the calls of the methods of a model that empty its cache, by their names."""
    for name in dir(type(model)):
        if _EMPTIES.match(name) and _arguments(getattr(model, name, None)) == "":
            yield f"model.{name}()"


def candidates(model: nn.Module, call: Call, space: Mapping[str, Any]) -> Iterator[Cached]:
    """Yield the ways in which a model may be continued, by the names of its arguments.

    `space` are the names of its file.
    """
    if not cache_argument(model) or call.sequence_first or call.labels:
        return
    for start in ("None", *caches_made(model, space), *_PLAIN):
        plain = begun(model, start)
        for counted in counts(model) if plain.counted else (*counts(model), ""):
            yield from _with_part(model, call, replace(plain, counted=counted), space)


def begun(model: nn.Module, start: str) -> Cached:
    """Return how a model takes the cache of the expression `start`, by its arguments' names."""
    named = {squashed(one): one for one in signature_of(model).parameters}
    flag, counted = (
        next((named[one] for one in names if one in named), "") for names in (_FLAGS, STARTS)
    )
    return Cached(cache_argument(model), start, flag=flag, counted=counted)


def caches_made(model: nn.Module, space: Mapping[str, Any]) -> Iterator[str]:
    """Yield the expressions of caches that methods of the model, or classes of its file, make."""
    for name in dir(type(model)):
        made = getattr(model, name, None)
        if not ("cache" in name.lower() and squashed(name).startswith(_MAKES) and callable(made)):
            continue
        if (given := _arguments(made)) is not None:
            yield f"model.{name}({given})"
    for name, one in space.items():
        if not (inspect.isclass(one) and "cache" in name.lower() and name.isidentifier()):
            continue
        if (given := _arguments(one)) is not None:
            yield f"{name}({given})"
            yield f"[{name}({given}) for _ in range(sizes.layers)]"


def _arguments(made: Any) -> str | None:
    """Return the arguments of a call that makes a cache, None where one has no known name."""
    try:
        own = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):
        return None
    given = []
    for one in own:
        code = MADE_OF.get(squashed(one.name))
        if code:
            given.append(f"{one.name}={code}")
        elif one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            return None
    return ", ".join(given)


def _with_part(
    model: nn.Module, call: Call, plain: Cached, space: Mapping[str, Any]
) -> Iterator[Cached]:
    """Yield a candidate for each place of its result that may hold the cache.

    Where the result holds none, a cache that was given is the one that a step changes.
    """
    try:
        with undisturbed():
            result, kept = called(model, call, plain, space)
    except Exception:  # code that a user wrote may raise anything
        return
    found = list(_kept_in(result, call))
    if found and call.part is None:  # the logits alone, where no cache is asked for
        at, attribute = _place_of_logits(result)
        plain = replace(plain, logits=at, of_attribute=attribute)
    for part, attribute, held in found:
        one = _reordered(plain, part, attribute, held)
        yield one
        if str(part).startswith("present"):  # of the new tokens alone, as in the first GPT-2
            yield from (replace(one, joined=axis) for axis in (-2, -3))
    if not found and plain.start != "None":
        yield _reordered(plain, None, False, kept)


def called(
    model: nn.Module, call: Call, plain: Cached, space: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return the result of a first step, and the cache that was given to it."""
    tokens = probe_tokens()[:, :3]
    sizes = getattr(model, "sizes_of_caches", None)
    kept = eval(plain.start, {**space, "model": model, "rows": len(tokens), "sizes": sizes})
    fixed = {own: one for own, one in call.fixed.items() if own != plain.argument}
    given = {**fixed, call.tokens: tokens, plain.argument: kept}
    if call.required:
        held = {"mask_of_all": torch.ones_like(tokens, dtype=torch.bool), **call.space}
        given[call.required] = eval(call.held(call.required, call.required_form), held)
    if plain.flag:
        given[plain.flag] = True
    if plain.counted:
        given[plain.counted] = 0
    return model(**given), kept


def _kept_in(result: Any, call: Call) -> Iterator[tuple[int | str, bool, Any]]:
    """Yield the parts of a result that may hold a cache: place, whether an attribute, and value."""
    if _is_row(result):
        parts = [(at, False, one) for at, one in enumerate(result) if at != call.part]
        yield from (one for one in parts if _holds_tensors(one[2]))
        return
    mapped = isinstance(result, Mapping)
    held = result if mapped else getattr(result, "__dict__", None) or _fields(result)
    for name, one in held.items():
        named = any(word in name.lower() for word in _RESULTS)
        if named and name != call.part and one is not None:
            yield name, not mapped, one


def _place_of_logits(result: Any) -> tuple[int | str | None, bool]:
    """Return the place of the first tensor (B, N, V), and whether it is an attribute."""
    parts: Iterable[tuple[int | str, Any]] = enumerate(result) if _is_row(result) else ()
    held = result if isinstance(result, Mapping) else getattr(result, "__dict__", None) or {}
    for at, one in [*parts, *held.items(), *_fields(result).items()]:
        if isinstance(one, Tensor) and one.dim() == 3:
            return at, not (_is_row(result) or isinstance(result, Mapping))
    return None, False


def _is_row(result: Any) -> bool:
    return isinstance(result, tuple | list) and not hasattr(result, "_fields")


def _fields(result: Any) -> dict[str, Any]:
    return {name: getattr(result, name) for name in getattr(result, "_fields", ())}


def _holds_tensors(value: Any) -> bool:
    """Say whether a part of a result is a container, or an object of the user's, and no loss."""
    if isinstance(value, Tensor):
        return value.dim() > 3
    if isinstance(value, tuple | list | dict):
        return bool(value)
    return value is not None and hasattr(value, "__dict__")


def _reordered(plain: Cached, part: Any, attribute: bool, held: Any) -> Cached:
    """Return the candidate with its place, and with the way in which rows are exchanged."""
    method = next((one for one in ("reorder", "reorder_cache") if hasattr(held, one)), "")
    how = method or ("rows" if _has_rows(held, len(probe_tokens())) else "")
    return replace(plain, part=part, attribute=attribute, reorder=how)


def _has_rows(held: Any, rows: int) -> bool:
    """Say whether a cache is made of tensors alone whose first axis is that of the rows."""
    if isinstance(held, Tensor):
        return held.dim() > 1 and len(held) == rows
    if isinstance(held, dict):
        return bool(held) and all(_has_rows(one, rows) for one in held.values())
    if isinstance(held, tuple | list) and type(held) in (tuple, list):
        return bool(held) and all(_has_rows(one, rows) for one in held)
    return False
