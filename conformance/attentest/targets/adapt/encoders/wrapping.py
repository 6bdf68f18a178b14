"""The module that embeds tokens and calls the layers of a stack: its arguments and its calls."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Inner
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.computed_values import OTHER_IDS, other_ids
from attentest.targets.adapt.encoders.inputs.arguments import (
    hides,
    of_loss,
    of_source,
    required,
    sequences,
    unread,
    without_effect,
)
from attentest.targets.adapt.encoders.inputs.open_masks import open_masks
from attentest.targets.adapt.encoders.inputs.pads import pad_of_code
from attentest.targets.adapt.encoders.seen import Seen, Uncalled, is_answered, lengths_in, uncalled
from attentest.targets.adapt.encoders.stack import KEEP, EmbeddedStack, is_same, replaced
from attentest.targets.adapt.masks import is_length
from attentest.targets.adapt.names import ROLES
from attentest.targets.adapt.objects.mask_holders import held_masks, mask_holders
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Unclear
from attentest_spec import Sizes

BATCH, LENGTH, _KEYS = 2, 5, 7
_NEAR = 1e-5
"""Difference of rows that depend on the same numbers, in single precision."""


@dataclass(frozen=True)
class Wrapping:
    """The module at `path` in `whole`, a `name` built at `sizes`, and its `layers` in it.

    `component` is what the layers are, and `pads` says that the constructor takes the pad id.
    `features` is the path of the first matrix of one that takes vectors in the place of ids.
    `turned` says that its ids are (L, B).
    """

    name: str
    whole: nn.Module
    sizes: Sizes
    component: str
    path: str
    layers: str
    pads: bool
    features: str = ""
    turned: bool = False
    parameters: Mapping[str, inspect.Parameter] = field(init=False)

    def __post_init__(self) -> None:
        """Read the signature."""
        parameters = inspect.signature(self.module.forward).parameters
        object.__setattr__(self, "parameters", parameters)

    @property
    def module(self) -> nn.Module:
        """The module that is called."""
        return self.whole.get_submodule(self.path)

    def inner(self) -> tuple[Inner, inspect.Signature]:
        """Return how the layers are called, and with which arguments."""
        tokens, zeros = self._tokens()
        options: dict[str, Any] = {"layers": self.layers, "tokens": tokens, "zeros": tuple(zeros)}
        options |= self._watched() | ({"features": self.features} if self.features else {})
        options |= {"turned": True} if self.turned else {}
        if not (self.pads or self.memory or self.features):
            options |= {"pad": self._pad_of_code(options)}
        inner = Inner(self.path, options, pads=self.pads)
        loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        kept = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for own, one in self.parameters.items()
            if own not in (tokens, *zeros) and one.kind not in loose
        ]
        kept.sort(key=lambda one: one.name != self.memory)
        if self.memory and not required(self.module) and self._hides_later(inner):
            kept = [one for one in kept if not hides(one.name) or self._is_over_keys(one.name)]
        idle = without_effect(self.module)
        is_hiding = not ({*self._masks} - {*idle} or self.memory or self.features)
        if is_hiding and self._hides_pads(inner):
            kept = [*(one for one in kept if one.name not in idle), _named(KEEP, None)]
        x = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return inner, inspect.Signature([x, *kept])

    def _pad_of_code(self, options: Mapping[str, Any]) -> int:
        """Return the pad id that the code has as a number, 0 where none shows."""

        def stack(pad: int) -> nn.Module:
            return Inner(self.path, {**options, "pad": pad})(self.whole, self.sizes)

        return pad_of_code(stack, self.sizes.source_vocabulary, self.sizes.d_model)

    def masked(self) -> tuple[Inner, inspect.Signature] | None:
        """Return what `inner` does where the module makes a mask of its tokens or of an argument.

        None otherwise.
        """
        try:
            found = self.inner()
        except Unclear:  # its stack may be called all the same
            return None
        has_mask = any(own == KEEP or hides(own) for own in found[1].parameters)
        return found if has_mask else None

    @property
    def memory(self) -> str:
        """The argument of the memory of a decoder, "" for an encoder."""
        if self.component != "decoder":
            return ""
        own = sequences(self.module, self.component)
        named = [one for one in own if squashed(one) in ROLES["memory"] and one not in own[:1]]
        return named[0] if named else own[-1]

    def calls(self, ids: Tensor) -> Iterator[dict[str, Any]]:
        """Yield the arguments of calls for `ids` (B, L), one of which the module may accept.

        They differ in the masks, which hide nothing: those that it must be given, and then all of
        them, as code may read a mask that its signature allows to leave out.
        """
        needed = [one for one in self._masks if self._is_required(one)]
        flat = {one: torch.zeros_like(ids[:, 0]) for one in of_loss(self.module.forward)}
        for masks in [needed, self._masks] if len(needed) < len(self._masks) else [needed]:
            for given in self._calls_with(masks, ids):
                yield from [given, given | flat] if flat else [given]  # labels of tokens, of texts

    def _calls_with(self, masks: Sequence[str], ids: Tensor) -> Iterator[dict[str, Any]]:
        """Yield the arguments of calls for `ids` (B, L) with `masks` in the forms of masks."""
        tokens, zeros = self._tokens()
        given = {tokens: self._entering(ids)} | {one: other_ids(one, ids) for one in zeros}
        given = {own: one.t() for own, one in given.items()} if self.turned else given
        if self.memory:
            seeded = torch.Generator().manual_seed(0)
            memory = torch.randn(len(ids), _KEYS, self.sizes.d_model, generator=seeded)
            given[self.memory] = memory.to(next(self.module.parameters()).dtype)
        batch, length = ids.shape
        held = mask_holders(self.module.forward)
        kinds = {one: kind for one, kind in held.items() if one in masks}
        kind = next(iter(kinds.values()), None)
        masks_of = (held_masks(kind, open_masks(batch, length, one)) for one in (length, _KEYS))
        for mask, over_keys in zip(*masks_of, strict=True):
            own = {one: self._is_over_keys(one) for one in masks}
            lengths = {
                one: torch.full((batch,), _KEYS if keys else length)
                for one, keys in own.items()
                if is_length(one)
            }
            hidden = {one: over_keys if keys else mask for one, keys in own.items()}
            yield given | hidden | lengths

    def _entering(self, ids: Tensor) -> Tensor:
        """Return what a call gets for `ids` (B, L): vectors (B, L, F) where it takes those."""
        if not self.features:
            return ids
        width: int = vars(self.module.get_submodule(self.features))["in_features"]
        first = next(self.module.parameters())
        return first.new_ones(*ids.shape, width)

    def maps_input(self) -> bool:
        """Say whether the matrix of its features comes before its layers, each after the last.

        Layers that get the features again are no stack that could be judged with another input.
        """
        layers = list(self.module.get_submodule(self.layers).children())
        matrix = self.module.get_submodule(self.features)
        called: list[nn.Module] = []
        passed: list[Any] = []

        def noted(one: nn.Module, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            called.append(one)
            output = call(*args, **named)
            if one is not matrix:
                given = next(x for x in (*args, *named.values()) if isinstance(x, Tensor))
                passed.extend([given, output[0] if isinstance(output, tuple) else output])
            return output

        for given in self.calls(torch.ones(BATCH, LENGTH, dtype=torch.int64)):
            called.clear()
            passed.clear()
            with suppress(Exception), undisturbed(), ExitStack() as noting:
                for one in (matrix, *layers):
                    noting.enter_context(replaced(one, partial(noted, one)))
                self.module(**given)
            if layers[0] in called:
                follow = zip(passed[1:-1:2], passed[2::2], strict=True)
                return called == [matrix, *layers] and all(is_same(*two) for two in follow)
        return False

    def changes_input(self, path: str) -> bool:
        """Say whether the module at `path` in the whole gives its first layer another input."""
        ids = torch.randint(3, self.sizes.source_vocabulary - 3, (BATCH, LENGTH))
        stack = self.whole.get_submodule(path)
        first = next(self.module.get_submodule(self.layers).children())
        seen: list[Tensor] = []

        def enter(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            floats = (x for x in (*args, *named.values()) if isinstance(x, Tensor))
            seen.append(next(x for x in floats if x.is_floating_point()))
            return call(*args, **named)

        try:
            for given in self.calls(ids):
                seen.clear()
                watched = replaced(stack, enter), replaced(first, enter)
                with suppress(Exception), undisturbed(), watched[0], watched[1]:
                    self.module(**given)
                if len(seen) == 2:
                    outer, inner = seen
                    return not any(torch.equal(inner, x) for x in (outer, outer.transpose(0, 1)))
        except Unclear:  # how it is called is not said: its stack may be all the same
            return False
        return False

    def gives_more(self, path: str) -> bool:
        """Say whether the module at `path` in the whole cannot do with what it has to be given.

        It may get a list of None for its layers where the default is None, which has no items.
        """
        ids = torch.randint(3, self.sizes.source_vocabulary - 3, (BATCH, LENGTH))
        stack = self.whole.get_submodule(path)
        failed: list[bool] = []

        def enter(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            whole = call(*args, **named)
            needed = _needed(inspect.signature(call), args, named)
            try:
                call(**needed)
            except Exception:  # code that a user wrote may raise anything
                failed.append(len(needed) < len([*args, *named]))
            return whole

        try:
            for given in self.calls(ids):
                with suppress(Exception), undisturbed(), replaced(stack, enter):
                    self.module(**given)
                    return any(failed)
        except Unclear:  # how it is called is not said: its stack may be all the same
            return False
        return False

    @property
    def _masks(self) -> list[str]:
        return [one for one in self.parameters if hides(one)]

    def _tokens(self) -> tuple[str, list[str]]:
        """Return the argument of the token ids, and those of other ids; Unclear for more."""
        own = list(self.parameters)
        named = [one for one in ROLES["tokens"] if one in map(squashed, own)]
        tokens = next((one for one in own if named and squashed(one) == named[0]), own[0])
        if self.memory:
            own = sequences(self.module, self.component)
            (tokens,) = (one for one in own if one != self.memory)
        idle = unread(self.module)
        zeros = [
            one for one in own if one != tokens and (squashed(one) in OTHER_IDS or one in idle)
        ]
        given = (tokens, *zeros)
        rest = [one for one in required(self.module) if one not in given]
        if rest and rest != [self.memory]:
            raise Unclear(
                f"{self.name} embeds its tokens itself, and nothing says what to give for "
                f"{' and '.join(rest)}. Add {' '.join(f'--give {one}=VALUE' for one in rest)} (in "
                f"Python: given={{NAME: VALUE}}), or name the class of its layers alone."
            )
        return tokens, [
            one for one in zeros if self.parameters[one].default is inspect.Parameter.empty
        ]

    def _watched(self) -> dict[str, Any]:
        """Return the layout of the layers and the norm after them, as one call shows them."""
        ids = torch.randint(1, self.sizes.source_vocabulary - 1, (BATCH, LENGTH))
        failure = ""
        with undisturbed():
            calls = list(self.calls(ids))
        for given in calls:
            seen = Seen(self.module, self.layers)
            try:
                with undisturbed(), seen:
                    self.module(**given)
            except Exception as raised:  # code that a user wrote may raise anything
                failure = failure or f"{type(raised).__name__}: {raised}"
                longest = self.calls(_ones(self.sizes.max_length))
                answered = self._answered(str(raised)) or is_answered(self.module, longest)
                if seen.output is None or not answered:
                    continue
            shape = seen.shape
            width = self.sizes.d_model
            if seen.reason:
                raise Uncalled(f"{self.name} embeds its tokens itself, and {seen.reason}")
            if shape in ((BATCH, LENGTH, width), (LENGTH, BATCH, width)):
                first = shape[0] == LENGTH
                return {"norm": seen.norm} | ({"sequence_first": True} if first else {})
            failure = "its layers are not called with (B, L, D)"
        where = ".".join(filter(None, (self.path, self.layers)))
        raise uncalled(self.name, where, failure, self._answered(failure))

    def _answered(self, failure: str) -> list[int]:
        """Return the lengths of the failure of a call with which another one succeeds."""
        tried = lengths_in(failure, self.sizes.max_length, self.sizes.d_model)
        return [one for one in tried if is_answered(self.module, self.calls(_ones(one)))]

    def _is_over_keys(self, own: str) -> bool:
        return bool(self.memory) and of_source(squashed(own))

    def _is_required(self, own: str) -> bool:
        return self.parameters[own].default is inspect.Parameter.empty

    def _hides_later(self, inner: Inner) -> bool:
        """Say whether the layers of a decoder hide later positions where no mask is given."""
        source = torch.Generator().manual_seed(0)
        shape = BATCH, LENGTH, self.sizes.d_model
        kind = next(self.module.parameters()).dtype
        x, memory = (torch.randn(shape, generator=source).to(kind) for _ in range(2))
        moved = torch.cat([x[:, :2], x[:, 2:].flip(1)], dim=1)
        try:
            with undisturbed():
                stack = inner(self.whole, self.sizes).eval()
                found, other = (stack(one, **{self.memory: memory}) for one in (x, moved))
        except Exception:  # code that a user wrote may raise anything, as without a mask
            return False
        near = (found - other).abs().amax(-1) <= _NEAR
        return bool(near[:, :2].all()) and not bool(near[:, 2:4].any())

    def _hides_pads(self, inner: Inner) -> bool:
        """Say whether the pad id in the tokens changes what the layers make of one input."""
        x = torch.randn(BATCH, LENGTH, self.sizes.d_model)
        keep = torch.ones(BATCH, LENGTH, dtype=torch.bool)
        keep[:, 1] = False
        with undisturbed():
            stack = inner(self.whole, self.sizes)
            assert isinstance(stack, EmbeddedStack)
            return not torch.equal(stack(x), stack(x, keep=keep))


def _needed(
    signature: inspect.Signature, args: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Return those of the arguments of a call that have no default, by their names."""
    given = signature.bind(*args, **named).arguments
    return {
        own: given[own]
        for own, one in signature.parameters.items()
        if one.default is one.empty and own in given
    }


def is_list(module: nn.Module, width: int) -> bool:
    """Say whether the layers in `module` are called one by one: it passes one input alone.

    Those of a `width` that return more than their output cannot be called in a row.
    """
    if not isinstance(module, nn.Sequential):
        return isinstance(module, nn.ModuleList | nn.ModuleDict)
    needed = [
        one
        for one in inspect.signature(module[0].forward).parameters.values()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    try:
        with undisturbed():
            returned = module[0](torch.randn(BATCH, LENGTH, width))
    except Exception:  # it may take something else
        return len(needed) > 1
    return len(needed) > 1 or isinstance(returned, tuple)


def path_of(whole: nn.Module, layers: str, tables: Sequence[str]) -> str:
    """Return the path of the innermost module that holds the `layers` and one of the `tables`."""
    names = layers.split(".")
    return next(
        path
        for end in range(len(names) - 1, -1, -1)
        if not isinstance(
            whole.get_submodule(path := ".".join(names[:end])), nn.ModuleList | nn.ModuleDict
        )
        and (not tables or any(one.startswith(f"{path}." if path else "") for one in tables))
    )


def _ones(length: int) -> Tensor:
    return torch.ones(BATCH, length, dtype=torch.int64)


def _named(own: str, default: Any) -> inspect.Parameter:
    return inspect.Parameter(own, inspect.Parameter.KEYWORD_ONLY, default=default)
