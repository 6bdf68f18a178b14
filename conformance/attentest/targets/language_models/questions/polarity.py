"""The masks of a decoder-only model: what its numbers show, and what its documentation says."""

import re
from typing import Any

from attentest.targets.adapt.makers.default_masks import demand_default
from attentest.targets.adapt.masks import meanings_by_words
from attentest.targets.adapt.reading import Contrary, Reading
from attentest.targets.comments import words_on
from attentest.targets.language_models.calling import MASK_FORMS, Call

_HIDES = MASK_FORMS["True is padding"]
_SAID = {"keep": "marks the tokens", "blocks": "marks the padding"}

_BY_ITSELF = re.compile(
    r"(no (attention )?mask|mask is none|not (given|specified|provided)|if none|by default)"
    r"[^.;]*\bcausal|\bcausal[^.;]*"
    r"(no mask|is none|if none|not (given|specified|provided)|by default)"
)
"""Words on a mask of later tokens that code makes where none is given."""


def forms_meant(meaning: str) -> list[str]:
    """Return the forms of a mask with the `meaning` that a user gives, all of them for none."""
    hides = {"keep": False, "blocks": True}.get(meaning)
    return [one for one in MASK_FORMS.values() if hides is None or (one == _HIDES) == hides]


def doubts_of_mask(name: str, model: Any, call: Call, reading: Reading) -> list[str]:
    """Return the assumption on a mask that marks padding, which words do not say.

    Raises Contrary where the documentation of the `model`, called `name`, says something else than
    its numbers show.
    """
    own = call.mask
    if not own or reading.meaning_of(own) or reading.anyway:
        return []
    used = "blocks" if call.mask_form == _HIDES else "keep"
    meanings, source = meanings_by_words(own, words_on(getattr(model, "forward", model), model))
    stated = [one for one in meanings if one in _SAID] if source == "documentation" else []
    if stated and used not in meanings:
        raise Contrary(
            f"By its documentation the {own} of {name} {_SAID[stated[0]]}, and its numbers are "
            f"those of one that {_SAID[used]}. Say which one is meant: --set "
            f"mask={own}:{stated[0]} or --set mask={own}:{used}."
        )
    if not stated:
        demand_default(name, own, used, model)
    if used == "keep" or stated:
        return []
    return [
        f"assumed that {own} marks the padding (True hides a token), as measured: a mistake if it "
        f"is meant to mark the tokens"
    ]


def demand_documented_order(name: str, model: Any, call: Call, reading: Reading) -> None:
    """Raise Contrary where only a given mask hides later tokens, and words say another thing.

    That is documentation of the class `model`, called `name`, by which a causal mask is used where
    none is given.
    """
    own = call.order
    if not own or own in reading.given or reading.anyway:
        return
    words = re.sub(r"\s+", " ", words_on(model.forward, model).lower())
    if said := _BY_ITSELF.search(words):
        raise Contrary(
            f'The documentation of {name} says "{said[0]}", and without {own} its numbers are '
            f"those of a model that hides no later token. Either that is a mistake, or every call "
            f"is to give the mask: --anyway judges it with that."
        )
