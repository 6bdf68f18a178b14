"""Carries the entries of one backend's model over to another's, through canonical names.

What makes it exact is proven on the arrays, bit by bit: a fresh model of the source that is given
the canonical parameters alone has every entry of the checkpoint again, and the target gives back
every parameter that it was given. The design choices that no parameter shows have to be equal.
"""

from dataclasses import dataclass

from attentest.analysis.undeclared import effective_choices
from attentest.harness.errors import NotConvertible
from attentest.studies.convert.built import Built
from attentest.studies.convert.entries import Arrays, canonical, completed, precision_of, same
from attentest.studies.convert.phrases import phrases
from attentest.studies.convert.places import Places
from attentest_spec import CHOICES, Backend, Choices, Sizes

SETTLED_BY_ENTRIES = (
    "head_width",
    "norm_bias",
    "norm_sharing",
    "feed_forward_bias",
    "projection_bias",
    "generator_bias",
    "tying",
)
"""Choices about which parameters there are: shapes, zeros and equal arrays show what they cost."""

WITHOUT_EFFECT = ("fully_masked_row",)
"""Choices that no pair of sentences shows that each have a real token."""


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


def carry(entries: Arrays, source: Backend, target: Backend, sizes: Sizes) -> Carried:
    """Carry `entries` of the `source`'s model at `sizes` over to the `target`'s.

    Raises NotConvertible where a model cannot be built or its state cannot be read.
    """
    precision = precision_of(entries)
    own, theirs = (_fitted(backend, sizes) for backend in (source, target))
    state, wrong = completed(entries, Built(source, own, precision))
    parameters, unmapped = canonical(state, source, own, precision)
    made = Built(target, theirs, precision)
    places = Places(parameters, made.export())
    given = places.given(sizes, Choices.of(source.choices))
    made.load(given)
    merged = [name for name, array in made.export().items() if not same(array, given[name])]
    one = phrases((f"{made.name} has one array for parameters that differ", merged))
    lost = (*_differing(source, target), *wrong, *unmapped, *places.lost(), *one)
    return Carried(made.state(), state, lost, tuple(places.notes()))


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


def _differing(source: Backend, target: Backend) -> list[str]:
    """Say which choices differ that decide what is computed with equal parameters."""
    ours, theirs = effective_choices(source), effective_choices(target)
    compared = [name for name in CHOICES if name not in SETTLED_BY_ENTRIES + WITHOUT_EFFECT]
    return phrases(
        (
            f"choices differ between {source.name} and {target.name}",
            (
                f"{name} ({ours[name]} and {theirs[name]})"
                for name in compared
                if ours[name] != theirs[name]
            ),
        )
    )
