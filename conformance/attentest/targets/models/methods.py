"""The methods `encode` and `decode` of a whole model, which give what its call does."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from torch import Tensor

from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models import arguments
from attentest.targets.models.calling import Call
from attentest.targets.models.combining import ALIKE, MOST, combinations
from attentest.targets.models.forms import Form
from attentest.targets.models.probing import Probe
from attentest.targets.models.results import generator_of

METHOD_SECONDS = 3.0
"""CPU time for which ways to call `encode` and `decode` are tried."""


def methods_of(
    probe: Probe, call: Call, doc: str, reading: Reading
) -> tuple[dict[str, Call], tuple[str, ...]]:
    """Return `encode` and `decode`, where they are methods that give what the call does; doubts.

    Where they do so without padding alone, they are not judged, and that is a doubt.
    """
    if call.conventions.cut:
        return {}, ()
    source, target = probe.tokens
    clean = source.clone(), target.clone()
    source[0, -2:], target[0, -1] = probe.sizes.source_pad, probe.sizes.target_pad
    padded = source, target
    wanted = [probe.output(call.compiled(), *tokens) for tokens in (padded, clean)]
    clock, near = Clock(METHOD_SECONDS), False

    def agrees(encode: Call, decode: Call, number: int) -> bool:
        source, target = (padded, clean)[number]
        memory = probe.called(encode.compiled(), source)
        output = probe.called(decode.compiled(), target, memory, source)
        return _equal(output, wanted[number])

    encodes = list(islice(_candidates(probe, call, "encode", doc, reading, None), ALIKE))
    for encode in sorted(encodes, key=lambda one: not _hides_padding(probe, one)):
        memory = probe.called(encode.compiled(), source)
        for decode in islice(_candidates(probe, call, "decode", doc, reading, memory), ALIKE):
            masked = bool(decode.arguments.masks or encode.arguments.masks)
            if not masked or (_alike(encode, decode) and agrees(encode, decode, 0)):
                return {"encode": encode, "decode": decode}, ()
            near = near or (_alike(encode, decode) and agrees(encode, decode, 1))
            if clock.rings():
                return {}, (UNHIDDEN,) * near
    return {}, (UNHIDDEN,) * near


def _hides_padding(probe: Probe, encode: Call) -> bool:
    """Say whether the memory of a padded source is that of the source without its padding."""
    source, _ = probe.tokens
    padded = source.clone()
    padded[:, -2:] = probe.sizes.source_pad
    one, other = (probe.called(encode.compiled(), tokens) for tokens in (padded, source[:, :-2]))
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return False
    return bool((one[:, : other.shape[1]] - other).abs().max() < 1e-9)


UNHIDDEN = (
    "assumed that encode and decode are for sources without padding: where one is padded they give "
    "something else than the call, and neither is judged"
)


def _equal(output: Any, wanted: Tensor | None) -> bool:
    """Say whether two outputs agree, but for the last step of the first row, which is padding."""
    if not isinstance(output, Tensor) or wanted is None or output.shape != wanted.shape:
        return False
    near = ((output - wanted).abs() < 1e-9).all(-1)
    near[0, -1] = True
    return bool(near.all())


def _alike(encode: Call, decode: Call) -> bool:
    """Say whether the masks of two methods follow one convention."""
    both = [*encode.conventions.masks.values(), *decode.conventions.masks.values()]
    return len({form.convention for form in both}) <= 1


def _candidates(
    probe: Probe, call: Call, method: str, doc: str, reading: Reading, memory: Any
) -> Iterator[Call]:
    """Yield the ways to call `method` that give a result of the right shape."""
    function = getattr(probe.model, method, None)
    if not callable(function):
        return
    encodes = method == "encode"
    signature = inspect.signature(function)
    wanted = ["source"] if encodes else ["target", "memory"]
    if not encodes and any(one in ("src", "source") for one in signature.parameters):
        wanted.append("source")
    try:
        read = arguments.read(method, signature, wanted, reading)
    except Unclear:
        return
    takes = ("source",) if encodes else ("target", "memory", "source")
    source, target = probe.tokens
    roles = call.every_argument.masks
    known = {roles[own]: form for own, form in call.conventions.masks.items()}
    several = [_known(read, known), *islice(combinations(read, doc, reading), MOST)]
    for masks in several:
        how = call.conventions.but(masks=masks, part=None, drops_last=False)
        how = how.but(flat=how.flat and not encodes, turned=False, classes_second=False)
        tried = Call(read, how.but(generator=""), method, takes, encodes)
        if encodes:
            found = probe.called(tried.compiled(), source)
            shape = (*source.shape, probe.sizes.d_model)
            if isinstance(found, Tensor) and tuple(found.shape) == shape:
                yield tried
            continue
        result = probe.called(tried.compiled(), target, memory, source)
        if not isinstance(result, Tensor) or result.ndim != 3:
            continue
        if result.shape[-1] == probe.sizes.target_vocabulary:
            yield tried
        elif result.shape[-1] == probe.sizes.d_model:
            if call.conventions.tied:
                yield tried
                continue
            outside = call.conventions.generator or generator_of(probe, result, ())
            if outside:
                yield replace(tried, conventions=how.but(generator=outside))


def _known(read: arguments.Arguments, known: Mapping[str, Form]) -> dict[str, Form]:
    """Return the forms that the call takes, for the masks of the same roles."""
    alike = {**known, "memory": known.get("memory", known.get("source"))}
    return {own: form for own, role in read.masks.items() if (form := alike.get(role)) is not None}
