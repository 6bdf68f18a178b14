"""Infers how code is called: arguments, layout, masks, and what it returns.

A call that fails shows that documentation is out of date, and the probe wins. Documentation that a
call allows and whose numbers show the contrary is a question: either of the two is the mistake.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import nn

from attentest.targets.adapt import arguments, masks, names, probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.advice.own_order import orders_by_itself
from attentest.targets.adapt.advice.refused_masks import refusal
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders.mask_uses import demand_counted, shows_otherwise
from attentest.targets.adapt.encoders.repeated import demand_query, said_of
from attentest.targets.adapt.encoders.stack import KEEP
from attentest.targets.adapt.layouts import (
    adds_by_row,
    by_reason,
    documented_layout,
    ignores_input,
    layouts,
    sequence_first,
)
from attentest.targets.adapt.limits import built
from attentest.targets.adapt.masks import Style, is_length
from attentest.targets.adapt.objects.mask_holders import all_holders
from attentest.targets.adapt.objects.own_masks import without_own_mask
from attentest.targets.adapt.objects.unregistered import unregistered
from attentest.targets.adapt.options import demand_lengths_left_out
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Attempt, Contrary, Misused, Reading, Uncallable, Unclear
from attentest.targets.adapt.ungiven import (
    always_given,
    demand_default_object,
    hides_all,
    needed_masks,
    own_order,
    with_masks,
    with_optional_masks,
)
from attentest.targets.adapt.unspecified import lengths, samples
from attentest.targets.adapt.unspecified.frozen_tables import demand_filled, demand_trained
from attentest.targets.adapt.unspecified.gates import demand_network
from attentest.targets.adapt.unspecified.polarity import leaning
from attentest.targets.adapt.unspecified.rows_of_ids import demand_vectors
from attentest.targets.adapt.unspecified.sums import demand_sum
from attentest.targets.kernels import demand_runnable
from attentest_spec import COMPONENTS

_OUTDATED = "which fails"
_BY_CHANCE = "that shape is documented, and works only where the batch is as large as the heads"
_OTHER_SHAPE = "no call takes the documented shape"
_ADDED = (
    "assumed that its caller adds the encoding to the input: if it is meant to return the sum, "
    "this is a mistake"
)
_IN_PART = f"{masks.NO_CONVENTION} exactly: under this one a hidden key counts less"
_DOUBTS = ("assumed ", _OUTDATED, _BY_CHANCE, _OTHER_SHAPE, masks.NO_CONVENTION)


def doubtful(said: Iterable[str]) -> list[str]:
    """Return those of the sentences on a call that may be wrong."""
    return [one for one in said if any(doubt in one for doubt in _DOUBTS)]


def adapter_of(code: Code, reading: Reading) -> tuple[Probe, Adapter, list[str]]:
    """Return the adapter that calls the code, what it was found with, and what to say of it."""
    carried = arguments.read(code.name, code.component, code.signature, reading)
    holders = all_holders(code.signature.parameters, code.thing, [*_parts(code.construction)])
    layout = layouts(code.component)[0]
    adapter = Adapter(code.component, code.signature, carried, layout, holders=holders)
    probe, adapter, keys, how = _with_layout(code, adapter, reading)
    if not reading.anyway:
        demand_trained(code.name, probe, adapter)
        demand_filled(code.name, probe, adapter)
        demand_lengths_left_out(code, reading, keys, partial(_placed, adapter=adapter))
    if "x" not in reading.arguments:
        demand_query(code.name, probe, adapter)
    adapter, alone = without_own_mask(code.name, probe, adapter, reading)
    adapter, said = _masked(probe, adapter, code, reading, keys)
    demand_default_object(code.name, probe, adapter)
    adapter, always = always_given(code, probe, adapter, reading)
    said += [*alone, *always, *needed_masks(adapter)]
    said += demand_sum(code.name, probe, adapter)
    said += said_of(carried, code.signature)
    forgets = _forgets_input(probe, adapter) and not reading.strict
    if forgets:
        adapter = replace(adapter, returns=replace(adapter.returns, added=True))
    if forgets or (adapter.returns.added and adapter.layout.fold == "whole"):
        said.append(f"{_ADDED}{', and --strict reports it' if forgets else ''}")
    if orders_by_itself(code, probe, adapter, reading):
        adapter = replace(adapter, causal=True)
        said.append(own_order(code))
    lies = f"tensors: {adapter.layout.words} ({how}); it returns {adapter.returns.words}"
    given = " and as you say" if set(reading.arguments) & set(carried.roles) else ""
    return probe, adapter, [f"{carried.words} (by the signature{given})", lies, *said]


def _parts(made: object) -> Iterator[object]:
    """Yield what makes the parts that are given to a constructor, and the parts of these."""
    for one in made.fillings.values() if isinstance(made, Construction) else ():
        if isinstance(one.value, Construction):
            yield one.value.make
            yield from _parts(one.value)


def _forgets_input(probe: Probe, adapter: Adapter) -> bool:
    """Say whether an encoding in the shape of its input does not depend on it."""
    table = adapter.component == "positional_encoding" and not adapter.returns.added
    return table and ignores_input(partial(probe.called, adapter), probe.given(adapter))


def _with_layout(code: Code, adapter: Adapter, reading: Reading) -> tuple[Probe, Adapter, int, str]:
    """Return probe, adapter and number of keys as :func:`_placed`, and how the layout was found."""
    if reading.layout:
        return *_placed(code, adapter, reading.layout), "as you say"
    if code.construction is not None and "batch_first" in code.construction.fillings:
        return *_placed(code, adapter, "batch-first"), "as it is built"
    words = documented_layout(code.words)
    if not words:
        placed = _placed(code, adapter, "")
        if not _shows_other(*placed[:2]):
            return *placed, "the first that a call takes"
        # Placed once more: a mask of another shape may be the one that fits the other layout.
        return *_placed(code, adapter, _other_layout(placed[1])), "as a probing call shows"
    try:
        probe, adapter, keys = _placed(code, adapter, words)
    except Unclear:
        placed = _placed(code, adapter, "")
        return *placed, f"as a probing call shows; its documentation says {words}, {_OUTDATED}"
    if _shows_other(probe, adapter):
        other = _other_layout(adapter)
        raise Contrary(
            f"The documentation of {code.name} says {words}, and a probing call shows {other}. "
            f"Say which one is meant: --set layout={words} or --set layout={other} (in Python: "
            f"layout={words!r} or layout={other!r})."
        )
    return probe, adapter, keys, "by its documentation"


def _placed(code: Code, adapter: Adapter, only: str) -> tuple[Probe, Adapter, int]:
    """Return a probe and the adapter in a layout that fits, with the number of keys that did.

    Different lengths are tried first; equal ones alone are for the clauses. Unclear if none fits.
    """
    why: list[str] = []
    for ways in (with_masks(adapter), with_optional_masks(adapter)):
        for dtype in (torch.float64, torch.float32) if ways else ():
            probe = Probe(built(code, dtype), dtype)
            for keys in (7, 5):
                given = probe.given(adapter, keys=keys)
                fitting = []
                for tried in ways:
                    found, refusals = probing.with_layout(probe, tried, only, given)
                    if not refusals and not hides_all(probe, found, given, keys):
                        fitting.append(found)
                        if _is_finite(probe.called(found, given)):
                            break
                    why = why or refusals
                if fitting:  # a mask that was meant to hide nothing, and hides all, shows nothing
                    shown = _is_finite(probe.called(fitting[-1], given))
                    return probe, fitting[-1] if shown else fitting[0], keys
    demand_runnable(code.name, why[0], code.thing)
    if isinstance(probe.built, nn.Module) and (reason := unregistered(probe.built)):
        raise Unclear(f"{code.name} could not be called as {code.component}: {reason}.")
    demand_network(code.name, code.component, probe)
    demand_vectors(code.name, probe, adapter)
    lengths.demand_any_length(code, adapter)
    left = ", ".join(_unnamed(adapter))
    without = f", and without {left} (None by default)" if left else ""
    raise Uncallable(
        f"{code.name} could not be called as {code.component}. What was tried: {by_reason(why)}. "
        f"It was called with {adapter.arguments.words}{without}.",
        "If it is another component, name it with --as.",
        attempts=list(_attempts(code, adapter)),
        taken=code.component,
    )


def _is_finite(answer: torch.Tensor | str) -> bool:
    return isinstance(answer, torch.Tensor) and bool(answer.isfinite().all())


def _attempts(code: Code, adapter: Adapter) -> Iterator[Attempt]:
    """Yield what an argument that is not given may carry: the sequence that is attended to."""
    used = {*adapter.arguments.roles.values(), *adapter.arguments.fixed, adapter.arguments.padding}
    rest = [
        own
        for own, one in adapter.signature.parameters.items()
        if own not in used and one.default is None and "mask" not in squashed(own)
    ]
    if code.component == "multi_head_attention" and adapter.arguments.joined:
        query = adapter.arguments.roles["query"]
        yield from (Attempt(arguments={"query": query, "key": own}) for own in rest[:2])


def _shows_other(probe: Probe, adapter: Adapter) -> bool:
    """Say whether one input alone shows that the sequence lies on the other axis."""
    if adapter.component == "positional_encoding":
        return adds_by_row(partial(probe.called, adapter), probe.given(adapter))
    return adapter.component in probing.SEQUENCES and probing.swaps_batch(probe, adapter)


def _other_layout(adapter: Adapter) -> str:
    return "batch-first" if sequence_first(adapter.layout) else "sequence-first"


def _masked(
    probe: Probe, adapter: Adapter, code: Code, reading: Reading, keys: int
) -> tuple[Adapter, list[str]]:
    """Return `adapter` with a style for every mask, and how each was found."""
    said = []
    adapter = _with_shown_mask(probe, adapter, keys)
    slots = {role: own for role, own in adapter.arguments.roles.items() if role in names.MASKS}
    if adapter.arguments.padding:
        slots["padding"] = adapter.arguments.padding
    refused = []
    for slot, own in slots.items():
        found = _Mask(code, probe, adapter, slot, own, keys).style(reading)
        if found is None and is_length(own) and adapter.signature.parameters[own].default is None:
            adapter = _without(adapter, slot)  # it is named as one that is not given
            continue
        if found is None:
            refused.append(own)
            continue
        style, how = found
        adapter = replace(adapter, styles={**adapter.styles, slot: style})
        said.append(f"{own}: {style.words} ({how})")
    if refused:
        raise refusal(code, adapter, refused)
    if not slots and "mask" in COMPONENTS[adapter.component].inputs:
        said.append(_without_mask(adapter))
    return adapter, said


def _without(adapter: Adapter, slot: str) -> Adapter:
    """Return `adapter` with no argument for the mask `slot`."""
    roles = {role: own for role, own in adapter.arguments.roles.items() if role != slot}
    return replace(adapter, arguments=replace(adapter.arguments, roles=roles))


def _with_shown_mask(probe: Probe, adapter: Adapter, keys: int) -> Adapter:
    """Return `adapter` with the one argument as its mask that a call shows to be one.

    Only where none is called a mask: those that could be one by their default are tried.
    """
    roles = adapter.arguments.roles
    if "mask" not in COMPONENTS[adapter.component].inputs or "mask" in roles:
        return adapter
    found = []
    for own in _unnamed(adapter):
        carried = replace(adapter.arguments, roles={**roles, "mask": own})
        tried = replace(adapter, arguments=carried)
        if probing.style_shown(probe, tried, "mask", (), keys)[0] is not None:
            found.append(tried)
    return found[0] if len(found) == 1 else adapter


def _without_mask(adapter: Adapter) -> str:
    """Say that no argument was taken for a mask, and which ones could be one."""
    left = _unnamed(adapter)
    if not left:
        return "it takes no mask"
    options = " or ".join(f"--argument mask={name}" for name in left)
    return f"no argument was taken for a mask: {', '.join(left)} not given; add {options} if it is"


def _unnamed(adapter: Adapter) -> list[str]:
    """Return the arguments without a role that are None by default, and could be a mask."""
    carried = adapter.arguments
    used = {*carried.roles.values(), *carried.derived, *carried.fixed}
    no_mask = {*names.OTHER, *names.OFF, *names.KEY_WIDTH}
    return [
        own
        for own, one in adapter.signature.parameters.items()
        if own not in used and one.default is None and squashed(own) not in no_mask
    ]


@dataclass(frozen=True)
class _Mask:
    """One mask argument: the `slot` of the contract that the argument `own` carries."""

    code: Code
    probe: Probe
    adapter: Adapter
    slot: str
    own: str
    keys: int

    def style(self, reading: Reading) -> tuple[Style, str] | None:
        """Return how the mask is written, and how that was found; None where no form is accepted.

        Words decide what an entry means, the user's first. What a call shows decides the rest;
        Unclear where it shows the contrary of the words.
        """
        others = [one for one in self.adapter.signature.parameters if "_mask" in one]
        meanings, source = masks.meanings_by_words(self.own, self.code.words, others=others)
        meant, by = reading.meaning_of(self.own), "you"
        if self.code.inner is not None and self.code.inner.stack and self.own == KEEP:
            meant, by = "keep", "ids"
        if meant:
            meanings, source = (meant,), by
        shown, accepted, about = self._tried(meanings)
        if shown and not reading.anyway:
            found = self.code.name, self.probe, self.adapter, self.slot, shown, self.keys
            shown, assumed = samples.settled(*found, strict=reading.strict)
            about += assumed
            if not meanings:
                demand_counted(*found[1:4], shown, self.keys, self.own)
        if not meant and not shown:
            self._ask(meanings, source)
            if accepted is None and not self._shown()[1]:
                return None
            if accepted is not None and accepted.meaning == "lengths":
                self._ask_of_lengths(accepted, is_said="lengths" in meanings)
        undecided = not shown and not meanings
        lean = undecided and leaning(self.probe, self.adapter, self.slot, self.keys)
        accepted = self._shown([lean])[1] if lean else accepted
        how = _IN_PART if lean else masks.how_found(shown, source)
        return shown or accepted or masks.plain_style(meanings), how + about

    def _tried(self, meanings: Sequence[str]) -> tuple[Style | None, Style | None, str]:
        """Return the styles that are shown and accepted, and what to say of the shape."""
        wanted = masks.shapes_by_words(self.own, self.code.words)
        shown, accepted = self._shown(meanings, wanted)
        if not wanted or accepted:
            return shown, accepted, ""
        level = replace(self.probe, batch=probing.SIZES.heads)
        _, by_chance = self._shown(meanings, wanted, level)
        if by_chance:
            return None, by_chance, f"; a mistake: {_BY_CHANCE}"
        shown, accepted = self._shown(meanings)
        return shown, accepted, f"; {_OTHER_SHAPE}"

    def _shown(
        self,
        meanings: Sequence[str] = (),
        shapes: Sequence[str] = (),
        probe: Probe | None = None,
    ) -> tuple[Style | None, Style | None]:
        found = probe or self.probe
        return probing.style_shown(found, self.adapter, self.slot, meanings, self.keys, shapes)

    def _ask(self, meanings: Sequence[str], source: str) -> None:
        """Raise Unclear where a mask shows the contrary of the words."""
        contrary = self._shown()[0] if meanings else None
        name = self.code.name
        roles = [*self.adapter.arguments.roles, *["padding"] * bool(self.adapter.arguments.padding)]
        several = sum(role in (*names.MASKS, "padding") for role in roles) > 1
        own = f"{self.own}:" if several else ""
        if contrary and contrary.meaning not in meanings:
            meant, used = meanings[0], contrary.meaning
            text = (
                f"By its {source} the {self.own} of {name} is one that {masks.SAID[meant]}, and a "
                f"probing call shows one that {masks.SAID[used]}. Say which one is meant: --set "
                f"mask={own}{meant} or --set mask={own}{used} (in Python: mask='{own}{used}')."
            )
            if shows_otherwise(self.probe, self.adapter, self.slot, contrary, self.keys):
                raise Misused(text, argument=self.own, meant=meant, used=used)
            raise Contrary(text)

    def _ask_of_lengths(self, style: Style, *, is_said: bool) -> None:
        """Raise Unclear where lengths do something else than hide keys, rightly or nearly so."""
        found = self.probe, self.adapter, self.slot, style, self.keys
        if lengths.shows_wrong_lengths(*found):
            return
        if not is_said:
            raise Unclear(
                lengths.of_each_head(self.code.name, self.own, bool(self.adapter.needs_mask))
            )
        if lengths.hide_queries(*found):
            raise Unclear(self._hidden_rows())
        without = "" if self.adapter.needs_mask else f"--give {self.own}=None judges it without, "
        raise Contrary(
            f"By its name the {self.own} of {self.code.name} says how many keys are no padding, "
            f"and a probing call shows that it does not hide the others: {without}--set "
            f"mask=lengths has it judged as that (in Python: given={{..}} or mask='lengths')."
        )

    def _hidden_rows(self) -> str:
        """Return what to say of lengths that hide the rows of queries too."""
        text = (
            f"{self.code.name} is not judged with its lengths: {self.own} hides the rows of "
            f"queries as well as keys, and a hidden row has an output that the spec does not have."
        )
        if self.adapter.needs_mask:
            return f"{text} It needs them: {self.own}=None raises an error."
        return f"{text} --give {self.own}=None judges it without."
