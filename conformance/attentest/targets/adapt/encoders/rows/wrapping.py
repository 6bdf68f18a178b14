"""Classes that make the rows of their layers of images, of vectors or of ids of one length."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Inner
from attentest.targets.adapt.encoders.inputs.arguments import required
from attentest.targets.adapt.encoders.seen import Seen, is_answered
from attentest.targets.adapt.encoders.stack import KEEP, EmbeddedStack, is_same, replaced
from attentest.targets.adapt.encoders.wrapping import BATCH, LENGTH, Wrapping
from attentest.targets.adapt.probing import undisturbed

_LEAST = 3
"""The least number of rows that patches give: two samples have fewer axes of that length."""


_NEAR = 1e-5
"""Difference of rows that depend on the same numbers, in single precision."""
_LENGTHS = (4, 7)
"""Numbers of rows that layers get, one after the other."""


@dataclass(frozen=True)
class RowsWrapping(Wrapping):
    """A class that makes rows of what is `given` to it, and calls its layers.

    `given` is the shape of one sample: of an image (C, H, W), of ids (N,), or of vectors (N, 0), of
    which the width is that of the module at `features`, or that of the model for none.
    """

    given: tuple[int, ...] = ()

    def inner(self) -> tuple[Inner, inspect.Signature]:
        """Return how the layers are called: with vectors, and with masks where rows are ids."""
        tokens, zeros = self._tokens()
        seen = self._seen()
        options: dict[str, Any] = {"layers": self.layers, "tokens": tokens, "given": self.given}
        options |= {"zeros": tuple(zeros), "norm": seen.norm, "features": self.features}
        options |= {"sequence_first": seen.shape[0] != BATCH}
        kept = self._masks if self._is_row_each(seen) else []
        masks = [self.parameters[one].replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in kept]
        x = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        held = {"rows": seen.shape[not options["sequence_first"]]} if seen.shape else {}
        plain, counted = (Inner(self.path, one) for one in (options, options | held))
        is_counted = not kept and not self._takes_rows(plain) and self._takes_rows(counted)
        return counted if is_counted else plain, inspect.Signature([x, *masks])

    def is_answered(self) -> bool:
        """Say whether a call succeeds, with what comes behind the layers."""
        return is_answered(self.module, [self.arguments()])

    def is_read(self) -> bool:
        """Say whether a call calls its layers in a row, each with what the last one returned.

        The first one gets rows as wide as the model, of what the module at `features` mapped.
        """
        if len(required(self.module)) > 1:
            return False
        layers = list(self.module.get_submodule(self.layers).children())
        mapping = [self.module.get_submodule(self.features)] if self.features else []
        called: list[nn.Module] = []
        passed: list[Any] = []

        def noted(one: nn.Module, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            output = call(*args, **named)
            called.append(one)
            if one in mapping:
                return output
            passed.append(next(x for x in (*args, *named.values()) if isinstance(x, Tensor)))
            passed.append(output[0] if isinstance(output, tuple) else output)
            return output

        given = self.arguments()
        with suppress(Exception), undisturbed(), ExitStack() as noting:
            for one in (*mapping, *layers):
                noting.enter_context(replaced(one, partial(noted, one)))
            self.module(**given)
        follow = zip(passed[1:-1:2], passed[2::2], strict=True)
        if called != [*mapping, *layers] or not all(is_same(*two) for two in follow):
            return False
        seen = self._seen()
        *lead, width = seen.shape
        return not seen.several and width == self.sizes.d_model and self._has_rows(lead)

    def filled(self) -> tuple[Inner, inspect.Signature] | None:
        """Return how the layers are called with ids of one length that padding fills up to it.

        None where they get another row than those of the ids, and where a row of padding counts.
        """
        if not self._is_row_each(self._seen()) or any(map(self._is_required, self._masks)):
            return None
        options = dict(self.inner()[0].stack) | {"filled": True}
        inner = Inner(self.path, options, pads=self.pads)
        try:
            with undisturbed():
                stack = inner(self.whole, self.sizes).eval()
                assert isinstance(stack, EmbeddedStack)
                rows = torch.randn(BATCH, LENGTH, self.sizes.d_model)
                rows = rows.to(next(self.module.parameters()).dtype)
                keep = torch.ones(BATCH, LENGTH, dtype=torch.bool)
                keep[:, -1] = False
                whole, shorter = stack(rows), stack(rows[:, :-1])
                hidden = stack(rows, keep=keep)
        except Exception:  # code that a user wrote may raise anything
            return None
        moved, kept = whole[:, :-1] - shorter, hidden[:, :-1] - shorter
        if float(kept.abs().max()) > _NEAR or float(moved.abs().max()) <= _NEAR:
            return None
        x = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        own = inspect.Parameter(KEEP, inspect.Parameter.KEYWORD_ONLY, default=None)
        return inner, inspect.Signature([x, own])

    def takes_other_rows(self) -> bool:
        """Say whether its layers can be called with other numbers of rows than it makes itself."""
        inner, signature = self.inner()
        if any(one.default is one.empty for one in [*signature.parameters.values()][1:]):
            return True  # a mask has to be given: how is not known yet
        return self._takes_rows(inner)

    def _takes_rows(self, inner: Inner) -> bool:
        try:
            with undisturbed():
                stack = inner(self.whole, self.sizes).eval()
                first = next(self.module.parameters())
                shapes = [(BATCH, one, self.sizes.d_model) for one in _LENGTHS]
                return all(
                    stack(torch.randn(one).to(first.dtype)).shape == torch.Size(one)
                    for one in shapes
                )
        except Exception:  # code that a user wrote may raise anything
            return False

    def enters(self, path: str) -> bool:
        """Say whether a call gives the module at `path` rows as wide as the model, and no more.

        A mask that is None is nothing.
        """
        given: list[Any] = []

        def enter(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            given.append([one for one in (*args, *named.values()) if one is not None])
            return call(*args, **named)

        inside, arguments = self.module.get_submodule(path), self.arguments()
        with suppress(Exception), undisturbed(), replaced(inside, enter):
            self.module(**arguments)
        if len(given) != 1 or len(given[0]) != 1 or not isinstance(given[0][0], Tensor):
            return False
        *lead, width = given[0][0].shape
        return width == self.sizes.d_model and self._has_rows(lead)

    def alone(self, path: str) -> inspect.Signature:
        """Return the signature of the module at `path` with its rows, and nothing else."""
        own = inspect.signature(self.module.get_submodule(path).forward)
        return own.replace(parameters=[*own.parameters.values()][:1])

    def _has_rows(self, lead: list[int]) -> bool:
        """Say whether there are rows of samples; fewer than ids leave out those to be predicted."""
        least = self.given[0] if len(self.given) == 1 else _LEAST
        return len(lead) == 2 and BATCH in lead and max(lead) >= least

    def _is_row_each(self, seen: Seen) -> bool:
        """Say whether there is one row for each id, and no other."""
        is_each = len(self.given) == 1 or (len(self.given) == 2 and not self.features)
        return is_each and sorted(seen.shape[:2]) == sorted((BATCH, self.given[0]))

    def inputs(self, samples: int = BATCH) -> Tensor:
        """Return random images or vectors, or ids that are in every table."""
        source = torch.Generator().manual_seed(0)
        held = vars(self.module.get_submodule(self.features)) if self.features else {}
        width = held.get("in_features", held.get("in_channels", self.sizes.d_model))
        shape = samples, *(one or width for one in self.given)
        if len(self.given) == 1:
            return torch.randint(0, 2, shape, generator=source)
        return torch.randn(shape, generator=source).to(next(self.module.parameters()).dtype)

    def _entering(self, ids: Tensor) -> Tensor:
        if len(self.given) == 2 and not self.features:
            return torch.ones(*ids.shape, self.sizes.d_model).to(next(self.module.parameters()))
        return self.inputs(len(ids))

    def arguments(self, inputs: Tensor | None = None) -> Mapping[str, Any]:
        """Return the arguments of the first call with `inputs` that is accepted, or of the first.

        Without `inputs`, they are random.
        """
        entering = self.inputs() if inputs is None else inputs
        length = self.given[0] if len(self.given) == 1 else LENGTH
        tokens = self._tokens()[0]
        ids = torch.ones(len(entering), length, dtype=torch.int64)
        calls = [one | {tokens: entering} for one in self.calls(ids)]
        for given in calls:
            with suppress(Exception), undisturbed():  # code of a user's may raise anything
                self.module(**given)
                return given
        return calls[0]

    def _seen(self) -> Seen:
        seen, given = Seen(self.module, self.layers), self.arguments()
        with suppress(Exception), undisturbed(), seen:
            self.module(**given)
        return seen
