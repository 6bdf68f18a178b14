"""Carries the entries of one backend's model over to another's, through canonical names.

What makes it exact is proven on the arrays, bit by bit: a fresh model of the source that is given
the canonical parameters alone has every entry of the checkpoint again, and the target gives back
every parameter that it was given. The design choices that no parameter shows have to be equal.
"""

from dataclasses import dataclass

from attentest.harness.errors import NotConvertible
from attentest.studies.convert.built import Built
from attentest.studies.convert.entries import Arrays, canonical, completed, precision_of, same
from attentest.studies.convert.phrases import phrases
from attentest.studies.convert.places import Places
from attentest.studies.convert.rotary import reordered
from attentest.studies.convert.wholes import differing
from attentest_spec import Backend, Choices, Sizes


@dataclass(frozen=True)
class Carried:
    """The target's entries, and one phrase for everything that was not carried exactly.

    `state` is what they were carried from: the entries of the checkpoint, and what was missing as
    the source builds it. `notes` say what was added or left out without an effect.
    """

    entries: Arrays
    state: Arrays
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def carry(entries: Arrays, source: Backend, target: Backend, whole: str, sizes: Sizes) -> Carried:
    """Carry `entries` of the `source`'s model at `sizes` over to the `target`'s.

    Both are the component `whole`. Raises NotConvertible where a model cannot be built or its state
    cannot be read.
    """
    precision = precision_of(entries)
    own, theirs = (_fitted(backend, sizes) for backend in (source, target))
    state, wrong = completed(entries, Built(source, whole, own, precision))
    parameters, unmapped = canonical(state, source, whole, own, precision)
    ours, other = Choices.of(source.choices), Choices.of(target.choices)
    ordered, moved = reordered(parameters, own, ours, other)
    made = Built(target, whole, theirs, precision)
    places = Places(ordered, made.export())
    given = places.given(sizes, ours)
    made.load(given)
    merged = [name for name, array in made.export().items() if not same(array, given[name])]
    apart = phrases(
        (
            f"choices differ between {source.name} and {target.name}",
            differing(source, target, whole, own),
        )
    )
    one = phrases((f"{made.name} has one array for parameters that differ", merged))
    lost = (*apart, *wrong, *unmapped, *places.lost(), *one)
    return Carried(made.state(), state, lost, (*places.notes(), *_rows(moved, ours, other)))


def _fitted(backend: Backend, sizes: Sizes) -> Sizes:
    """Return `sizes` as the backend takes them; NotConvertible where it has no model that large."""
    fitted = backend.limits.fitted(sizes)
    names = ("d_model", "d_ff", "source_vocabulary", "target_vocabulary")
    changed = {name: getattr(fitted, name) for name in names}
    differing = [name for name, value in changed.items() if value != getattr(sizes, name)]
    if differing:
        wanted = ", ".join(f"{name}={getattr(sizes, name)}" for name in differing)
        nearest = ", ".join(f"{name}={changed[name]}" for name in differing)
        raise NotConvertible(
            f"{backend.name} has no model of {wanted}: its declared limits allow {nearest}."
        )
    return fitted


def _rows(moved: list[str], ours: Choices, theirs: Choices) -> list[str]:
    """Say which rows of queries and keys have another order."""
    pairs = f"{ours.rotary_pairs} to {theirs.rotary_pairs}"
    names = {name.partition("self_attention.")[2] for name in moved}
    return phrases(
        (f"rows were reordered, for rotary pairs from {pairs}, in every layer", sorted(names))
    )
