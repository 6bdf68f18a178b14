"""The inference of how a whole model is called: arguments by names, the rest by probing calls."""

import inspect
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import nn

from attentest.targets.adapt.encoders.seen import FIXED_LENGTH
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.kernels import demand_runnable
from attentest.targets.models import arguments
from attentest.targets.models.calling import EQUAL, FILLED, Call, Conventions
from attentest.targets.models.calls.positions import assumed_of_positions, with_counted_positions
from attentest.targets.models.calls.search import SURE, best_call, likeliest, runs
from attentest.targets.models.combining import (
    combinations,
    demand_documented_masks,
    nearest,
    said_of_masks,
)
from attentest.targets.models.inputs.defaults import makes_masks
from attentest.targets.models.inputs.packed import (
    read_packed,
    taken_in_pairs,
    unpacked,
)
from attentest.targets.models.inputs.sides import said_by_uses
from attentest.targets.models.lengths import (
    EQUAL_LENGTHS,
    EqualProbe,
    hides_all_filling,
    is_of_one_length,
    takes_equal_lengths,
)
from attentest.targets.models.methods import methods_of
from attentest.targets.models.probing import (
    Probe,
    fixed_pads,
    hides_by_mask,
    hides_tokens,
    ignores_source,
    shown,
    sides_padded_at_the_end,
    takes_pads_for_tokens,
    untrained_rows,
)
from attentest.targets.models.questions.hiding import (
    demand_masks,
    demand_own_tokens,
    demand_padding,
    demand_values,
    ungiven_of,
)
from attentest.targets.models.questions.inputs import demand_tokens
from attentest.targets.models.surrounded import signature_of
from attentest.targets.models.trials import Building
from attentest.targets.neighbours import named_builders
from attentest_spec import Sizes

TURNED = "assumed that the output is meant to be {}, where the tokens are {}"
INVERTED = (
    "{} hides the tokens of its source where there is padding, and not the padding: the mask that "
    "it makes of its ids is inverted"
)

UNREAD = "{} computes the same whatever the tokens of its source are"

PADDED_AT_END = (
    "assumed that padding of the {} is at its end: where its first token is padding, tokens are "
    "hidden or shown as a mistake would, which --strict reports"
)

PADS = (21, 22)
"""The pad ids of probing calls: no token of them, and different where a model can tell them."""


@dataclass(frozen=True)
class Inferred:
    """The call of a model, its methods, and sentences on how both were found.

    `pads` says who knows the pad ids: "call" (masks are handed in), "both" or "one" (the
    constructor takes two, or one for both sides), or "fixed" where they are in the code: `pad` is
    the one id then. `doubts` are those of the sentences that may be wrong, `ungiven` the optional
    arguments that get no value. `right_padded` says that padding of the target is not hidden, and
    `lengths` are the inputs whose padding is at their ends alone, as lengths say it.
    `masks_are_shown` says that all is hidden that right masks hide.
    """

    call: Call
    methods: Mapping[str, Call]
    pads: str
    said: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    pad: int | None = None
    ungiven: tuple[str, ...] = ()
    right_padded: bool = False
    lengths: tuple[str, ...] = ()
    masks_are_shown: bool = True


def probe_of(built: Building, sizes: Sizes) -> Probe:
    """Return the model built at `sizes` in float64, its parameters moved away from their start."""
    with undisturbed():
        model = built(sizes).double().eval()
        source = torch.Generator().manual_seed(0)
        for one in model.parameters():
            one += 0.2 * torch.randn(one.shape, generator=source, dtype=torch.float64)
    model.pads, model.longest = (sizes.source_pad, sizes.target_pad), sizes.max_length
    kind = EqualProbe if built.equal else Probe
    return kind(model, sizes, built.doubled, built.widened)


_FIXED_PRECISION = (
    " It is called in float64, and a line that fixes float32 cannot join the two: take the "
    "precision of its input there."
)


def infer(built: Building, name: str, doc: str, reading: Reading) -> Inferred:
    """Return how the model is called; Unclear, with what to add, where no call fits."""
    knows = {"source_pad", "target_pad"} & built.known
    vocabularies = {"target_vocabulary": DISTINCT.source_vocabulary}
    sizes = DISTINCT if "target_vocabulary" in built.known else DISTINCT.but(**vocabularies)
    sizes = sizes.but(source_pad=PADS[0], target_pad=PADS[len(knows) != 1])
    probe = probe_of(built, sizes)
    plain_call = _plain_call(probe, name, reading)
    read = plain_call.every_argument
    if read.takes_one_pad and not knows:
        sizes = sizes.but(target_pad=sizes.source_pad)
        probe = probe_of(built, sizes)
    not_fixed = probe
    call, score, failure = likeliest(probe, plain_call, doc, reading)
    if read.masks and -1 < score < SURE and "heads" in built.known:
        # Heads that a mistake mixes hide what a mask means: with one of them, nothing is mixed.
        alone = probe_of(built, sizes.but(heads=1))
        other, found, _ = likeliest(alone, plain_call, doc, reading)
        if other and found == SURE and probe.output(other.compiled(), *probe.tokens) is not None:
            call, score = other, found
    if call is None and not reading.strict and is_of_one_length(failure, built, sizes):
        plain_call = replace(plain_call, conventions=Conventions(filled=True))
        call, score, _ = best_call(probe, plain_call, combinations(read, doc, reading))
    is_equal = call is None and takes_equal_lengths(
        probe, lambda one: runs(one, plain_call, doc, reading)
    )
    if is_equal and not (reading.strict or reading.anyway):
        plain_call = replace(plain_call, conventions=Conventions(equal=True))
        call, score, _ = best_call(probe, plain_call, combinations(read, doc, reading))
    if call is not None and score < SURE and not call.conventions.masks and not knows:
        for pad in fixed_pads(probe.model):
            plain = probe_of(built, sizes.but(source_pad=pad, target_pad=pad))
            other, found, _ = best_call(plain, plain_call, combinations(read, doc, reading))
            if other is not None and (found > score or (found == score and probe is not_fixed)):
                call, score, probe = other, found, plain
            if score == SURE:
                break
    if call is not None and call.conventions.is_filled:
        is_shown = score == SURE or _leaves_target_pads(probe, call)
        call = call if is_shown and hides_all_filling(probe, call) else None
    if call is None:
        demand_tokens(
            name, probe.model, read, failure, lambda: best_call(probe, plain_call, iter([{}]))
        )
        demand_runnable(name, failure, type(probe.model))
        if _NO_PART in failure and (makers := named_builders(type(probe.model))):
            raise Unclear(_OF_PARTS.format(name, failure, makers))
        raise Unclear(
            f"{name} could not be called as a whole model ({read.words}): {failure}. If an "
            f"argument was taken for another, say which is which with --argument source=NAME, "
            f"target=NAME, source_mask=NAME or target_mask=NAME, or fix one with --give NAME=VALUE."
            f"{_of_padding_alone(read)}{_FIXED_PRECISION * ('double' in failure.lower())}"
            f"{FIXED_LENGTH * is_of_one_length(failure, built, sizes)}"
            f"{EQUAL_LENGTHS * is_equal}"
        )
    if call.conventions.masks and score < SURE and not knows:
        # The mask of a side that gets none may be made by an id that is written in the code.
        rows = untrained_rows(probe.model)
        for pad in rows if len(rows) == 1 else ():
            plain = probe_of(built, sizes.but(source_pad=pad, target_pad=pad))
            other, found, _ = best_call(plain, plain_call, iter([dict(call.conventions.masks)]))
            if other is not None and found > score:
                call, score, probe = other, found, plain
    if read.masks and not call.conventions.masks and score < SURE:
        given = filter(None, combinations(read, doc, reading))
        masked_call, found, _ = best_call(probe, plain_call, given)
        if masked_call is not None and found >= score:
            named = {*read.masks} & {*reading.arguments.values()}
            is_of_order = call is not None and _hides_order(probe, call, masked_call)
            call = (
                masked_call if named or is_of_order or _hides_source(probe, masked_call) else call
            )
    is_asked = read.masks and not call.conventions.masks and score < SURE
    if is_asked and not makes_masks(type(probe.model).forward, read.masks):
        raise Unclear(
            f"{name} takes {' and '.join(read.masks)}, and no form of mask that was tried shows "
            f"what right masks show: it would be judged without.{nearest(probe, masked_call)} Say "
            f"which mask an argument is with --argument source_mask=NAME or target_mask=NAME, or "
            f"leave it out with --give {next(iter(read.masks))}=None."
        )
    if not reading.anyway:
        demand_own_tokens(probe, call, name)
    if not call.conventions.masks and not reading.anyway:
        demand_masks(probe, call, name)
        demand_values(probe, call, name)
        if not knows:
            demand_padding(probe, call, name)
    masked = any("keep" in form.code for form in call.conventions.masks.values())
    masked = masked or bool(read.with_lengths) or (read.takes_pads and not read.takes_one_pad)
    known = 1 if read.takes_one_pad else len(knows)
    codes = " ".join(form.code for form in call.conventions.masks.values())
    is_half_given = known == 1 and ("source_keep" in codes) != ("target_keep" in codes)
    is_half_given = is_half_given and not read.with_lengths  # the one id is that of the other side
    is_given = masked and not is_half_given
    pads = "call" if is_given else {2: "both", 1: "one"}.get(known, "fixed")
    meant = said_of_masks(read, doc, reading)
    against = demand_documented_masks(name, call.conventions.masks, meant)
    masks = tuple(_of_masks(call, score, against))
    steps = ["it has no call: encode and then decode are called"] * (call.encoding is not None)
    said = [*steps, read.words, *call.conventions.words, *masks]
    filling = [*[FILLED] * call.conventions.filled, *[EQUAL] * call.conventions.equal]
    methods, unhidden = ({}, ()) if filling else methods_of(probe, call, doc, reading)
    said += [f"method {one}: {found.arguments.words}" for one, found in methods.items()]
    sure = score == SURE and not against
    inverted = score < SURE and not masked and hides_tokens(probe, call.compiled())
    unread = ignores_source(probe, call.compiled())
    wrong = [*[INVERTED.format(name)] * inverted, *[UNREAD.format(name)] * unread]
    ends = () if reading.strict else sides_padded_at_the_end(probe, call.compiled())
    at_end = [PADDED_AT_END.format(" and ".join(ends))] * bool(ends)
    how = call.conventions
    tokens = "(L, B)" if how.sequence_first else "(B, L)"
    turned = [TURNED.format(how.axes, tokens)] * how.turned
    counted = assumed_of_positions(read)
    doubts = (*counted, *turned, *at_end, *wrong, *filling, *(() if sure else masks), *unhidden)
    pad = probe.sizes.source_pad if probe is not not_fixed else 0
    untrained = untrained_rows(probe.model) if pads == "call" and not knows else []
    if len(untrained) == 1:
        pads, pad = "fixed", untrained[0]
    return Inferred(
        call,
        methods,
        pads,
        (*said, *at_end, *unhidden),
        doubts,
        pad if pads == "fixed" else None,
        tuple(ungiven_of(probe.model, call)),
        not reading.strict and _leaves_target_pads(probe, call),
        tuple(dict.fromkeys([*call.lengths, *ends])),
        score == SURE,
    )


def _of_padding_alone(read: arguments.Arguments) -> str:
    """Return what to add where the one mask of the target is named as one of padding alone."""
    roles = {role: own for own, role in read.masks.items()}
    own = roles.get("target padding", "")
    if not own or {"target", "causal"} & set(roles):
        return ""
    return (
        f" {own} was given as a mask of padding (B, T), as its name says: if it hides later steps "
        f"too, add --argument target_mask={own}."
    )


_NO_PART = "'int' object is not callable"
_OF_PARTS = (
    "{} is a whole model whose parts are handed to it, and a part cannot be a number ({}).{}"
)


def _leaves_target_pads(probe: Probe, call: Call) -> bool:
    """Say whether the target's padding is not hidden, where no argument is given to hide it.

    Later steps are hidden: at the end of a target, padding reaches no real step then.
    """
    read, codes = call.every_argument, [form.code for form in call.conventions.masks.values()]
    if "target padding" in read.masks.values() or any("target_keep" in one for one in codes):
        return False
    found = call.compiled()
    later, earlier, _, others, hidden = shown(probe, found)  # the source's may be a mistake of it
    is_causal = later and earlier and others
    return is_causal and not hidden and takes_pads_for_tokens(probe, found, "target")


def _hides_source(probe: Probe, call: Call) -> bool:
    """Say whether all but the padding of the target is hidden, that of the source by a mask."""
    return _leaves_target_pads(probe, call) and hides_by_mask(probe, call.compiled())


def _hides_order(probe: Probe, plain: Call, masked: Call) -> bool:
    """Say whether later steps are hidden by the mask of a call, and by nothing without it."""
    later, earlier, _, others, _ = shown(probe, masked.compiled())
    return later and earlier and others and not next(shown(probe, plain.compiled()))


def _plain_call(probe: Probe, name: str, reading: Reading) -> Call:
    """Return the call by its arguments alone; of a model without one, `encode` and `decode`."""
    model, wanted = probe.model, ("source", "target")
    if type(model).forward is not nn.Module.forward or not all(
        callable(getattr(model, one, None)) for one in ("encode", "decode")
    ):
        reading = said_by_uses(type(model), reading)
        packed = read_packed(name, unpacked(type(model).forward), reading)
        read = packed or arguments.read(name, signature_of(model), wanted, reading)
        pairs = () if packed else taken_in_pairs(type(model).forward, read.tokens)
        return with_counted_positions(probe, Call(replace(read, with_lengths=pairs)))
    encode, decode = (inspect.signature(getattr(model, one)) for one in ("encode", "decode"))
    first = arguments.read(f"{name}.encode", encode, wanted[:1], reading)
    more = ["source"] * bool({"src", "source"} & {*decode.parameters})  # its padding is hidden
    second = arguments.read(f"{name}.decode", decode, (*wanted[1:], "memory", *more), reading)
    clash = [own for own, role in first.masks.items() if second.masks.get(own, role) != role]
    if clash:
        raise Unclear(
            f"{name} is called by its methods encode and decode, and {clash[0]} is another mask in "
            f"each: say which is which with --argument source_mask=NAME or target_mask=NAME."
        )
    return Call(second, encoding=first)


def _of_masks(call: Call, score: int, against: Collection[str]) -> Iterator[str]:
    plain = "as probing calls show" if score == SURE else "probing calls do not show it in full"
    if not call.conventions.masks:
        yield f"it makes its masks itself ({plain})"
    for own, form in call.conventions.masks.items():
        sure = f"{plain}, against its name or documentation" if own in against else plain
        yield f"{own}: None" if form.code == "None" else f"{own}: {form.words} ({sure})"
