"""Calls of decoder-only models that cannot do without the positions of their tokens."""

from dataclasses import replace

from torch import nn

from attentest.targets.language_models.calling import (
    POSITION_FORMS,
    Arguments,
    Call,
    gives_logits,
    with_part,
)

_FORMS = {
    POSITION_FORMS["(B, T)"]: "{0}.expand(tokens.shape)",
    POSITION_FORMS["(T), the same for all"]: "{0}",
}
"""Expressions of the positions of all tokens, by the forms in which others are given."""


def with_positions(model: nn.Module, found: Arguments) -> Call | None:
    """Return the call with the positions of its tokens, counted from 0; None where none fits."""
    for own in found.positions:
        for form, placed in _FORMS.items():
            fixed = {name: one for name, one in found.plain.fixed.items() if name != own}
            tried = replace(
                found.plain, fixed=fixed, placed=own, placed_form=placed, position_form=form
            )
            made = with_part(model, tried)
            if isinstance(made, Call) and gives_logits(model, made):
                return made
    return None
