"""The call of a whole model that shows most of what right masks show, of all that are tried."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

from attentest.targets.adapt.reading import Reading
from attentest.targets.models.calling import Call
from attentest.targets.models.combining import ALIKE, MOST, combinations, varied
from attentest.targets.models.forms import Form
from attentest.targets.models.probing import Probe, is_not_finite, separates_samples, shown
from attentest.targets.models.results import fitted

SURE = 5
"""The score of a call that shows all that right masks show."""

NOT_FINITE = (
    "without padding its output has numbers that are not finite, as where a mask of padding is "
    "inverted and hides every token"
)


def likeliest(
    probe: Probe, plain: Call, doc: str, reading: Reading
) -> tuple[Call | None, int, str]:
    """Return what `best_call` does of the combinations of masks, in an order that is soon done."""
    read = plain.every_argument
    tried = combinations(read, doc, reading)
    call, score, failure = best_call(probe, plain, islice(tried, ALIKE))
    for others in (*[varied] * len(read.masks), lambda *_: tried):
        held = call.conventions.masks if call is not None else {}
        rest = others(held, read, reading) if score < SURE else iter(())
        other, found, refused = best_call(probe, plain, rest)
        failure = failure or refused
        call, score = (other, found) if found > score else (call, score)
    return call, score, failure


def runs(probe: Probe, plain: Call, doc: str, reading: Reading) -> bool:
    """Say whether any of the likeliest calls of a model gives an output."""
    tried = combinations(plain.every_argument, doc, reading)
    return best_call(probe, plain, islice(tried, ALIKE))[0] is not None


def best_call(
    probe: Probe, plain: Call, combinations: Iterator[dict[str, Form]]
) -> tuple[Call | None, int, str]:
    """Return the call that shows most of what right masks show, its score, or why none runs."""
    best, most, failure = None, -1, ""
    for masks in islice(combinations, MOST):
        found = _laid_out(probe, plain, masks)
        if isinstance(found, str):
            failure = failure or found
            continue
        found = _cut(probe, found)
        ends = "target" in found.lengths
        score = sum(shown(probe, found.compiled(), ends=ends))
        if score > most:
            best, most = found, score
        if score == SURE:
            break
    return best, most, failure


def _cut(probe: Probe, call: Call) -> Call:
    """Return `call` without columns of padding alone, where lengths have to be those of columns."""
    source, target = probe.tokens
    if "source" in call.lengths:
        source[:, -2:] = probe.sizes.source_pad
    if "target" in call.lengths:
        target[:, -1] = probe.sizes.target_pad
    shorter = replace(call, conventions=call.conventions.but(cut=True))
    if not call.lengths or probe.output(call.compiled(), source, target) is not None:
        return call
    return call if probe.output(shorter.compiled(), source, target) is None else shorter


def _laid_out(probe: Probe, plain: Call, masks: dict[str, Form]) -> Call | str:
    """Return the call with tokens that lie as the model takes them, or why there is none."""
    failure = ""
    labels = (False, True) if plain.arguments.labels else (False,)
    for labelled, first in product(labels, (False, True)):
        how = plain.conventions.but(masks=masks, sequence_first=first, labelled=labelled)
        found = fitted(probe, replace(plain, conventions=how))
        if isinstance(found, str):
            failure = failure or found
        elif separates_samples(probe, found.compiled()):
            return found
        elif is_not_finite(probe, found.compiled()):
            failure = failure or NOT_FINITE
    return failure or "the tokens of one sample change the output of another"
