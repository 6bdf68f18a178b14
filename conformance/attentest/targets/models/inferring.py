"""The inference of how a whole model is called: arguments by names, the rest by probing calls."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.masks import meanings_by_words
from attentest.targets.adapt.parameters.found import DISTINCT
from attentest.targets.adapt.parameters.words import HEAD, words
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models import arguments
from attentest.targets.models.building import Building
from attentest.targets.models.calling import Call, Conventions
from attentest.targets.models.forms import Form, forms
from attentest.targets.models.probing import Probe, separates_samples, shown
from attentest.targets.models.surrounded import signature_of
from attentest_spec import Sizes

MOST = 600
"""Limit of the combinations of masks that are tried."""

ALIKE = 48
"""Limit of those with one convention, or with one number of axes."""

_AXES = (4, 3, 2)

SURE = 5
"""The score of a call that shows all that right masks show."""

PADS = (21, 22)
"""The pad ids of probing calls: no token of them, and different where a model can tell them."""


@dataclass(frozen=True)
class Inferred:
    """The call of a model, its methods, and sentences on how both were found.

    `pads` says who knows the pad ids: "call" (masks are handed in), "both" or "one" (the
    constructor takes two, or one for both sides), or "fixed" where they are in the code. `doubts`
    are those of the sentences that may be wrong.
    """

    call: Call
    methods: Mapping[str, Call]
    pads: str
    said: tuple[str, ...]
    doubts: tuple[str, ...] = ()


def probe_of(built: Building, sizes: Sizes) -> Probe:
    """Return the model built at `sizes` in float64, its parameters moved away from their start."""
    with undisturbed():
        model = built(sizes).double().eval()
        source = torch.Generator().manual_seed(0)
        for one in model.parameters():
            one += 0.2 * torch.randn(one.shape, generator=source, dtype=torch.float64)
    model.pads = sizes.source_pad, sizes.target_pad
    return Probe(model, sizes)


def infer(built: Building, name: str, doc: str, reading: Reading) -> Inferred:
    """Return how the model is called; Unclear, with what to add, where no call fits."""
    knows = {"source_pad", "target_pad"} & built.known
    vocabularies = {"target_vocabulary": DISTINCT.source_vocabulary}
    sizes = DISTINCT if "target_vocabulary" in built.known else DISTINCT.but(**vocabularies)
    sizes = sizes.but(source_pad=PADS[0], target_pad=PADS[len(knows) != 1])
    probe = probe_of(built, sizes)
    signature = signature_of(probe.model)
    read = arguments.read(name, signature, ("source", "target"), reading)
    call, score, failure = _best(probe, Call(read), _combinations(read, doc, reading))
    if call is not None and score < SURE and not call.conventions.masks and not knows:
        plain = probe_of(built, sizes.but(source_pad=0, target_pad=0))
        other, found, _ = _best(plain, Call(read), _combinations(read, doc, reading))
        if other is not None and found >= score:
            call, score, probe = other, found, plain
    if call is None:
        raise Unclear(
            f"{name} could not be called as a whole model ({read.words}): {failure}. Say which "
            f"argument is which with --argument source=NAME, target=NAME, source_mask=NAME or "
            f"target_mask=NAME, and fix one with --give NAME=VALUE."
        )
    masked = any("keep" in form.code for form in call.conventions.masks.values())
    pads = "call" if masked else {2: "both", 1: "one"}.get(len(knows), "fixed")
    against = _against(call.conventions.masks, _said(read, doc, reading))
    masks = tuple(_of_masks(call, score, against))
    said = [read.words, *call.conventions.words, *masks]
    methods = dict(_methods(probe, call, doc, reading))
    said += [f"method {one}: {found.arguments.words}" for one, found in methods.items()]
    sure = score == SURE and not against
    return Inferred(call, methods, pads, tuple(said), () if sure else masks)


def _of_masks(call: Call, score: int, against: Collection[str]) -> Iterator[str]:
    plain = "as probing calls show" if score == SURE else "probing calls do not show it in full"
    if not call.conventions.masks:
        yield f"it makes its masks itself ({plain})"
    for own, form in call.conventions.masks.items():
        sure = f"{plain}, against its name or documentation" if own in against else plain
        yield f"{own}: None" if form.code == "None" else f"{own}: {form.words} ({sure})"


def _combinations(
    read: arguments.Arguments, doc: str, reading: Reading
) -> Iterator[dict[str, Form]]:
    """Yield forms for the mask arguments: those that may be left out first, then alike ones."""
    optional = not any(own in read.required for own in read.masks)
    if optional:
        yield {}
    if not read.masks:
        return
    said = _said(read, doc, reading)
    options = {
        own: list(forms(role, [reading.mask] if reading.mask else ()))
        for own, role in read.masks.items()
    }
    every = forms("source", [reading.mask] if reading.mask else ())
    alike = {
        one: _narrowed(options, convention=one)
        for one in dict.fromkeys(form.convention for form in every)
    }
    # One convention for all masks, of one number of axes, is usual; words say which comes first.
    order = sorted(alike.values(), key=lambda held: len(_against(next(_products(held), {}), said)))
    for held in order:
        for axes in _AXES:
            yield from islice(_products(_narrowed(held, axes=axes)), ALIKE)
    for held in order:
        yield from islice(_products(held), ALIKE)
    for axes in _AXES:
        yield from islice(_products(_narrowed(options, axes=axes)), ALIKE)
    if not optional and any(own not in read.required for own in read.masks):
        needed = [own for own in read.masks if own in read.required]
        yield from (
            dict(zip(needed, chosen, strict=True))
            for chosen in product(*(options[own] for own in needed))
        )


def _said(
    read: arguments.Arguments, doc: str, reading: Reading
) -> dict[str, tuple[tuple[str, ...], str]]:
    """Return what each mask argument means by its documentation or its name, and which of them."""
    if reading.mask:
        return {}
    return {own: meanings_by_words(own, doc) for own in read.masks}


def _against(
    masks: Mapping[str, Form], said: Mapping[str, tuple[tuple[str, ...], str]]
) -> list[str]:
    """Return the arguments whose form is not what words say."""
    return [
        own
        for own, form in masks.items()
        if own in said and said[own][0] and form.meaning not in said[own][0]
    ]


def _narrowed(
    options: Mapping[str, Sequence[Form]], *, convention: str = "", axes: int = 0
) -> dict[str, list[Form]]:
    """Return the forms of each argument with a convention and a number of axes; None fits both."""
    return {
        own: [
            form
            for form in held
            if form.code == "None"
            or (convention in ("", form.convention) and axes in (0, form.axes))
        ]
        for own, held in options.items()
    }


def _products(options: Mapping[str, Sequence[Form]]) -> Iterator[dict[str, Form]]:
    """Yield every way to choose a form for each argument."""
    return (dict(zip(options, chosen, strict=True)) for chosen in product(*options.values()))


def _best(
    probe: Probe, plain: Call, combinations: Iterator[dict[str, Form]]
) -> tuple[Call | None, int, str]:
    """Return the call that shows most of what right masks show, its score, or why none runs."""
    best, most, failure = None, -1, ""
    for masks in islice(combinations, MOST):
        found = _laid_out(probe, plain, masks)
        if isinstance(found, str):
            failure = failure or found
            continue
        score = sum(shown(probe, found.compiled()))
        if score > most:
            best, most = found, score
        if score == SURE:
            break
    return best, most, failure


def _laid_out(probe: Probe, plain: Call, masks: dict[str, Form]) -> Call | str:
    """Return the call with tokens that lie as the model takes them, or why there is none."""
    failure = ""
    for first in (False, True):
        how = Conventions(masks, sequence_first=first)
        found = fitted(probe, replace(plain, conventions=how))
        if isinstance(found, str):
            failure = failure or found
        elif separates_samples(probe, found.compiled()):
            return found
    return failure or "the tokens of one sample change the output of another"


def fitted(probe: Probe, call: Call) -> Call | str:
    """Return `call` with the conventions of its result, or why that is no output of a model."""
    tokens = probe.tokens
    fired: dict[nn.Module, None] = {}  # in the order of their last calls

    def note(module: nn.Module, *_: Any) -> None:
        fired.pop(module, None)
        fired[module] = None

    hooks = [one.register_forward_hook(note) for one in probe.model.modules()]
    result = probe.called(call.compiled(raw=True), *tokens)
    for hook in hooks:
        hook.remove()
    if isinstance(result, str):
        return result
    batch, length = tokens[1].shape
    for key, part, attribute in parts_of(result):
        for drops in (False, True):
            how = call.conventions.but(part=key, attribute=attribute, drops_last=drops)
            found = _shaped(probe, how, part, batch, length - drops, fired)
            if found is not None:
                return replace(call, conventions=found)
    return "its result holds no tensor of the shape (B, T, vocabulary)"


def _shaped(
    probe: Probe,
    how: Conventions,
    part: Tensor,
    batch: int,
    length: int,
    fired: Collection[nn.Module],
) -> Conventions | None:
    lead = (length, batch) if how.sequence_first else (batch, length)
    sizes, shape = probe.sizes, tuple(part.shape)
    if shape == (*lead, sizes.target_vocabulary):
        return how
    if shape == (batch * length, sizes.target_vocabulary):
        return how.but(flat=True)
    if shape == (*lead, sizes.d_model):
        outside = _generator(probe, part, fired)
        if outside:
            return how.but(generator=outside)
        tied = _table_of_target(probe, fired)
        return how.but(tied=tied) if tied else None
    return None


def _table_of_target(probe: Probe, fired: Collection[nn.Module]) -> str:
    """Return the path of the table of tokens that was called last, "" for none."""
    shape = (probe.sizes.target_vocabulary, probe.sizes.d_model)
    tables = [
        one for one in fired if isinstance(one, nn.Embedding) and tuple(one.weight.shape) == shape
    ]
    paths = {module: name for name, module in probe.model.named_modules()}
    return f"{paths[tables[-1]]}.weight" if tables else ""


def _generator(probe: Probe, states: Tensor, fired: Collection[nn.Module]) -> str:
    """Return the child that maps states to the vocabulary and was not called, "" for none."""
    found = []
    for name, child in probe.model.named_children():
        if child in fired:
            continue
        result = probe.called(lambda _, x, child=child: child(x), states)
        wanted = (*states.shape[:2], probe.sizes.target_vocabulary)
        if isinstance(result, Tensor) and tuple(result.shape) == wanted:
            found.append(name)
    named = [name for name in found if set(words(name)) & HEAD]
    return next(iter(named or found), "")


def parts_of(result: Any) -> Iterator[tuple[int | str | None, Tensor, bool]]:
    """Yield the tensors of a result: the place of each, and whether that is an attribute."""
    if isinstance(result, Tensor):
        yield None, result, False
    elif isinstance(result, Mapping):
        yield from ((key, one, False) for key, one in result.items() if isinstance(one, Tensor))
    elif isinstance(result, tuple | list):
        names = getattr(result, "_fields", range(len(result)))
        for key, one in zip(names, result, strict=True):
            if isinstance(one, Tensor):
                yield key, one, isinstance(key, str)
    else:
        held = getattr(result, "__dict__", {})
        yield from ((key, one, True) for key, one in held.items() if isinstance(one, Tensor))


def _methods(probe: Probe, call: Call, doc: str, reading: Reading) -> Iterator[tuple[str, Call]]:
    """Yield `encode` and `decode`, where they are methods that together give what the call does."""
    source, target = probe.tokens
    source[0, -2:], target[0, -1] = probe.sizes.source_pad, probe.sizes.target_pad
    wanted = probe.output(call.compiled(), source, target)
    for encode in islice(_candidates(probe, call, "encode", doc, reading, None), ALIKE):
        memory = probe.called(encode.compiled(), source)
        for decode in islice(_candidates(probe, call, "decode", doc, reading, memory), ALIKE):
            masked = bool(decode.arguments.masks or encode.arguments.masks)
            output = probe.called(decode.compiled(), target, memory, source)
            if masked and not (_alike(encode, decode) and _equal(output, wanted)):
                continue
            yield "encode", encode
            yield "decode", decode
            return


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
    known = {call.arguments.masks[own]: form for own, form in call.conventions.masks.items()}
    several = [_known(read, known), *islice(_combinations(read, doc, reading), MOST)]
    for masks in several:
        how = call.conventions.but(masks=masks, part=None, flat=False, drops_last=False)
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
            outside = call.conventions.generator or _generator(probe, result, ())
            if outside:
                yield replace(tried, conventions=how.but(generator=outside))


def _known(read: arguments.Arguments, known: Mapping[str, Form]) -> dict[str, Form]:
    """Return the forms that the call takes, for the masks of the same roles."""
    alike = {**known, "memory": known.get("memory", known.get("source"))}
    return {own: form for own, role in read.masks.items() if (form := alike.get(role)) is not None}
