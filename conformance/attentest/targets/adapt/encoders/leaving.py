"""The input and the output of the layers of a class that embeds its tokens, as its calls show."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.encoders.entering import (
    BETWEEN,
    Added,
    Entering,
    Idle,
    Mismatch,
    NotRead,
    OtherPositions,
    is_near,
    is_norm,
)
from attentest.targets.adapt.encoders.mixing import attends_along_first
from attentest.targets.adapt.encoders.seen import Seen
from attentest.targets.adapt.encoders.stack import replaced
from attentest.targets.adapt.encoders.wrapping import BATCH, LENGTH, Wrapping
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Unclear
from attentest_spec.choices import Value


class Lost(Mismatch):
    """A class that does not return the output of its layers."""

    subject = ""


def demand_output(wrapping: Wrapping, *, heads: bool) -> None:
    """Raise Lost for a norm of the class that is not called, and for another output.

    `heads` says that other parameters come after the layers: what they return is not judged.
    Nothing is raised where no call is accepted.
    """
    ids = torch.randint(3, wrapping.sizes.source_vocabulary - 3, (BATCH, LENGTH))
    for given in wrapping.calls(ids):
        try:
            with undisturbed():
                result, ends, unused = _called(wrapping, given)
        except Exception:  # code that a user wrote may raise anything
            continue
        if unused:
            raise Lost(f"it holds {' and '.join(unused)}, which no call of it uses")
        outputs = [one for one in _tensors(result) if one.shape in [end.shape for end in ends]]
        if outputs and not heads and not any(is_near(a, b) for a in outputs for b in ends):
            raise Lost("it returns other numbers than its last layer, or the norm behind that")
        return


def options_entering(
    wrapped: Callable[[torch.dtype], Wrapping],
    tables: Sequence[str],
    length: int,
    *,
    heads: bool,
    added: Added,
) -> Mapping[str, Value]:
    """Return the options of the embedding and the positions, in double precision if it can.

    `wrapped` makes the class in a precision, `tables` may be those of the tokens, and a `length` is
    that of all sequences. `heads` says that other parameters come after the layers. `added` is what
    positions of no option add, which the question about them has.
    """
    failures: list[NotRead] = []
    for precision in (torch.float64, torch.float32):
        wrapping = wrapped(precision)
        start = f"{wrapping.path}." if wrapping.path else ""
        own = [one.removeprefix(start) for one in tables]
        try:
            found = _entering(wrapping, own, length)
            demand_output(wrapping, heads=heads)
            return found
        except NotRead as reason:
            failures.append(reason)
        except OtherPositions as mismatch:
            mismatch.added = added
            raise
        except Idle:
            raise
        except Unclear as question:
            failures.append(NotRead(str(question).partition(". ")[0]))
    raise failures[0]


def _entering(wrapping: Wrapping, tables: Sequence[str], length: int) -> Mapping[str, Value]:
    """Return the options of the embedding and the positions, of ids (L, B) where layers take those.

    Positions that differ between samples run along the first axis of the ids, and so may the
    layers: the sequence comes first then.
    """
    try:
        return Entering(wrapping, tables, length).choices()
    except Mismatch as mismatch:
        if length or str(mismatch) != BETWEEN or not attends_along_first(wrapping):
            raise
        own = {one.name: getattr(wrapping, one.name) for one in fields(wrapping) if one.init}
        try:
            return Entering(SequenceFirst(**own), tables).choices()
        except OtherPositions as other:
            raise Mismatch(str(other)) from other


class SequenceFirst(Wrapping):
    """A class that takes ids (L, B): its calls get the ids (B, L) with their axes exchanged."""

    def calls(self, ids: Tensor) -> Iterator[dict[str, Any]]:
        """Yield the arguments of calls for `ids` (B, L); see Wrapping."""
        for given in super().calls(ids):
            yield {
                name: one.T if isinstance(one, Tensor) and one.shape == ids.shape else one
                for name, one in given.items()
            }


def options_of_output(wrapping: Wrapping) -> Mapping[str, Value]:
    """Return no options, for a class whose input is not judged; Lost for a norm that is not called.

    What it returns besides the output of its layers is not judged.
    """
    demand_output(wrapping, heads=True)
    return {}


def _called(
    wrapping: Wrapping, given: Mapping[str, Any]
) -> tuple[Any, tuple[Tensor, ...], list[str]]:
    """Return the result of a call, the end of the stack in both layouts, and norms not called."""
    used: dict[str, Tensor] = {}
    seen = Seen(wrapping.module, wrapping.layers)

    def note(path: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        used[path] = call(*args, **named)
        return used[path]

    own = _norms(wrapping)
    with ExitStack() as watching:
        for path, one in own.items():
            watching.enter_context(replaced(one, partial(note, path)))
        watching.enter_context(seen)
        result = wrapping.module(**given)
    end = used.get(seen.norm, seen.output)
    return result, (end, end.transpose(0, 1)), [path for path in own if path not in used]


def _norms(wrapping: Wrapping) -> dict[str, nn.Module]:
    """Return the norms that belong to the class itself, or to what holds its layers."""
    holders = {"", *(".".join(wrapping.layers.split(".")[:end]) for end in range(1, 9))}
    holders -= {wrapping.layers}
    return {
        path: one
        for path, one in wrapping.module.named_modules()
        if path and path.rpartition(".")[0] in holders and is_norm(one)
    }


def _tensors(result: Any) -> list[Tensor]:
    results = result if isinstance(result, tuple | list) else [result]
    return [one for one in results if isinstance(one, Tensor)]
