"""Calls what a user wrote as the contract calls its component."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attentest.targets.adapt.arguments import (
    Arguments,
)
from attentest.targets.adapt.layouts import Layout
from attentest.targets.adapt.masks import Style
from attentest.targets.adapt.names import MASKS
from attentest.targets.adapt.objects.mask_holders import Holder
from attentest.targets.adapt.results import Returns
from attentest_spec import COMPONENTS, Unsupported


@dataclass(frozen=True)
class Adapter:
    """The conventions of one callable: arguments, layout, masks and results.

    `styles` says how each mask argument is written. `causal` says that it hides later positions
    by itself, `needs_mask` are the masks that cannot be left out or None. `helpers` are functions
    that expressions of computed arguments call. `holders` are the classes of masks that are
    objects, by the names of arguments.
    """

    component: str
    signature: inspect.Signature
    arguments: Arguments
    layout: Layout
    returns: Returns = field(default_factory=Returns)
    styles: Mapping[str, Style] = field(default_factory=dict)
    causal: bool = False
    needs_mask: Sequence[str] = ()
    helpers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    holders: Mapping[str, Holder] = field(default_factory=dict)

    def __call__(self, built: Any, *inputs: Any) -> Any:
        """Return the output, or output and weights, of `built` for the contract's `inputs`."""
        given = dict(zip(COMPONENTS[self.component].inputs, inputs, strict=True))
        results = [self.returns.picked(result) for result in self.results(built, given)]
        like = first_tensor(given)
        output = self._left([output for output, _ in results], like)
        if self.returns.added:
            output = like + output.to(like.dtype)  # the sum is its caller's
        if self.component != "attention":
            return output
        weights = [weights for _, weights in results if weights is not None]
        return output, self.layout.join(weights, like) if weights else None

    def _left(self, outputs: Sequence[Any], like: Tensor) -> Any:
        whole = all(isinstance(one, Tensor) and one.ndim > 1 for one in outputs)
        return self.layout.leave(outputs, like) if whole else outputs[0]

    def results(self, built: Any, given: Mapping[str, Any]) -> list[Any]:
        """Return what each call gives, as it came; `given` are the contract's inputs by name."""
        for one, other in self.arguments.joined:
            if not torch.equal(given[one], given[other]):
                raise Unsupported(f"its {one} is its {other}, and these differ")
        values = self._values(given)
        number = max((len(parts) for parts in values.values()), default=1)
        return [
            self.call(built, {own: parts[i % len(parts)] for own, parts in values.items()})
            for i in range(number)
        ]

    def _values(self, given: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
        """Return for every argument what each call gets."""
        values: dict[str, Sequence[Any]] = {}
        like = first_tensor(given)
        for role, own in self.arguments.roles.items():
            if role not in MASKS:
                values[own] = self._entered(role, given[role], like)
        for own, role in self.arguments.repeated.items():
            values[own] = self._entered(role, given[role], like)
        for role in [role for role in COMPONENTS[self.component].inputs if role in MASKS]:
            values |= self._held(self.masks(role, given, like))
        for own in self.arguments.derived:
            values[own] = [given["key"].shape[-1]]
        for own, code in self.arguments.computed.items():
            values[own] = [eval(code, {"torch": torch, **self.helpers}, dict(given))]
        return values

    def _held(self, masks: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return `masks` as the objects that hold them, where the code takes such."""
        return {
            own: [self.holders[own](one) for one in parts] if own in self.holders else parts
            for own, parts in masks.items()
        }

    def _entered(self, role: str, value: Any, like: Tensor) -> Sequence[Any]:
        if role == "sublayer":
            return [lambda x: x @ value]
        return self.layout.enter(value) if isinstance(value, Tensor) else [value]

    def masks(self, role: str, given: Mapping[str, Any], like: Tensor) -> dict[str, Sequence[Any]]:
        """Return the arguments that carry the mask `role`, {} where it is left out."""
        keep = given[role]
        if self.causal and role != "source_mask":
            keep = without_the_causal(keep, like.shape[-2])
        own = self.arguments.roles.get(role)
        keys = next((given[name] for name in ("key", "memory", "x") if name in given), like)
        if role == "target_mask":
            keys = like
        if keep is None and own in self.needs_mask:
            keep = torch.ones((1, 1, 1, keys.shape[-2]), dtype=torch.bool, device=like.device)
        if keep is None:
            return {}
        padding = self.arguments.padding
        if padding and role == "mask" and keep.shape[1] == keep.shape[2] == 1:
            return {padding: self.styles["padding"].write(keep, like, self.layout)}
        if own is None:
            raise Unsupported("it takes no mask")
        return {own: self.styles[role].write(keep, like, self.layout)}

    def call(self, built: Any, values: Mapping[str, Any]) -> Any:
        """Call with every argument by its name, those that have none by their place."""
        rest = {**self.arguments.fixed, **values}
        placed = [
            rest.pop(one.name, one.default)
            for one in self.signature.parameters.values()
            if one.kind is inspect.Parameter.POSITIONAL_ONLY
            or (one.kind is inspect.Parameter.VAR_POSITIONAL and one.name in rest)
        ]
        required = [
            one.name
            for one in self.signature.parameters.values()
            if one.default is inspect.Parameter.empty and one.name in self._mask_names()
        ]
        missing = {own: None for own in required if own not in rest}
        return built(*placed, **rest, **missing)

    def _mask_names(self) -> set[str]:
        roles = self.arguments.roles
        return {roles[role] for role in MASKS if role in roles} | {self.arguments.padding}


def first_tensor(given: Mapping[str, Any]) -> Tensor:
    """Return the first tensor, an empty one where there is none: a mask is made of a number."""
    return next((one for one in given.values() if isinstance(one, Tensor)), torch.empty(0))


def without_the_causal(keep: Tensor | None, length: int) -> Tensor | None:
    """Return None for the causal mask; Unsupported for another one."""
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    if keep is None or keep.shape[-2:] != causal.shape or not (keep.cpu() == causal).all():
        raise Unsupported("it hides later positions by itself, and takes no other mask")
    return None


def unread_methods(component: str) -> Mapping[str, Callable[..., Any]]:
    """Return what answers for the methods of the contract: that they cannot be read off."""

    def unread(*_: Any) -> Any:
        raise Unsupported("only its call was read, and no method of it")

    return dict.fromkeys(COMPONENTS[component].methods, unread)
