"""The forms of all mask arguments of one call that are tried, the likeliest first."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from attentest.targets.adapt.masks import meanings_by_words
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models import arguments
from attentest.targets.models.calling import Call
from attentest.targets.models.forms import LENGTHS, Form, forms
from attentest.targets.models.probing import Probe, shown

MOST = 600
"""Limit of the combinations of masks that are tried."""

ALIKE = 48
"""Limit of those with one convention, or with one number of axes."""

_AXES = (4, 3, 2)


def combinations(
    read: arguments.Arguments, doc: str, reading: Reading
) -> Iterator[dict[str, Form]]:
    """Yield forms for the mask arguments: those that may be left out first, then alike ones."""
    optional = not any(own in read.required for own in read.masks)
    if optional:
        yield {}
    if not read.masks:
        return
    said = said_of_masks(read, doc, reading)
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
    order = sorted(
        alike.values(), key=lambda held: len(against_words(next(_products(held), {}), said))
    )
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


def varied(
    masks: Mapping[str, Form], read: arguments.Arguments, reading: Reading
) -> Iterator[dict[str, Form]]:
    """Yield `masks` with another form of one of them: each may have a convention of its own."""
    meanings = [reading.mask] if reading.mask else ()
    for own in masks:
        yield from ({**masks, own: form} for form in forms(read.masks[own], meanings))


_SHOWN = (
    "hide later steps of the target",
    "leave the earlier ones",
    "hide padding of the source",
    "leave its other tokens",
    "hide padding of the target",
)
"""The properties of right masks, as :func:`shown` yields them."""


def nearest(probe: Probe, call: Call | None) -> str:
    """Return the masks of the call that shows most, and what they fail to do, "" for none."""
    if call is None:
        return ""
    given = " and ".join(f"{own} as {one.words}" for own, one in call.conventions.masks.items())
    found = zip(_SHOWN, shown(probe, call.compiled()), strict=True)
    missing = [what for what, is_shown in found if not is_shown]
    return f" The nearest is {given}: it does not {' nor '.join(missing)}."


def said_of_masks(
    read: arguments.Arguments, doc: str, reading: Reading
) -> dict[str, tuple[tuple[str, ...], str]]:
    """Return what each mask argument means by its documentation or its name, and which of them."""
    if reading.mask:
        return {}
    return {own: meanings_by_words(own, doc, others=read.masks) for own in read.masks}


def against_words(
    masks: Mapping[str, Form], said: Mapping[str, tuple[tuple[str, ...], str]]
) -> list[str]:
    """Return the arguments whose form is not what words say."""
    return [
        own
        for own, form in masks.items()
        if own in said and said[own][0] and form.meaning not in said[own][0]
    ]


def demand_documented_masks(
    name: str,
    masks: Mapping[str, Form],
    said: Mapping[str, tuple[tuple[str, ...], str]],
) -> list[str]:
    """Return the arguments whose form is not what their names say; Unclear for documentation."""
    against = against_words(masks, said)
    documented = [
        own
        for own in against
        if said[own][1] == "documentation"
        if {said[own][0][0], masks[own].meaning} == {"keep", "blocks"}  # an added one is neither
    ]
    if documented:
        own = documented[0]
        raise Unclear(
            f"The {own} of {name} hides the contrary of what is documented: {masks[own].words}, as "
            f"probing calls show, and the words say '{said[own][0][0]}'. That is a mistake of the "
            f"code or of its documentation: --set mask={masks[own].meaning} (in Python: mask=..) "
            f"judges it as its code is."
        )
    return against


def _narrowed(
    options: Mapping[str, Sequence[Form]], *, convention: str = "", axes: int = 0
) -> dict[str, list[Form]]:
    """Return the forms of each argument with a convention and a number of axes; None fits both."""
    return {
        own: [
            form
            for form in held
            if form.code == "None"
            or form.meaning == LENGTHS
            or (convention in ("", form.convention) and axes in (0, form.axes))
        ]
        for own, held in options.items()
    }


def _products(options: Mapping[str, Sequence[Form]]) -> Iterator[dict[str, Form]]:
    """Yield every way to choose a form for each argument."""
    return (dict(zip(options, chosen, strict=True)) for chosen in product(*options.values()))
