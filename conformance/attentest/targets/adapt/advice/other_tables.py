"""Tables of positions that are added to a scaled input, and that no option of positions gives."""

import numpy as np

from attentest.targets.adapt.parameters.trials.open_choices import LOOSE
from attentest_spec import CHOICES, Choices
from attentest_spec.parameters import learned_positions
from attentest_spec.positional_encoding import table
from attentest_spec.setting import Floats, Setting


def other_table(rows: Floats) -> str:
    """Return a clause on fixed rows (L, D) that no option gives, "" for rows that one gives.

    It compares the rows with the nearest of all options.
    """
    nearest: tuple[int, str, Floats] | None = None
    for option in CHOICES["positional_encoding"].options:
        choices = Choices(positional_encoding=option.name)
        if option.name == "none" or learned_positions(choices):
            continue
        wanted = table(Setting(choices=choices), *rows.shape)
        wrong = np.abs(rows - wanted) > LOOSE
        if not wrong.any():
            return ""
        if nearest is None or wrong.sum() < nearest[0]:
            nearest = int(wrong.sum()), option.name, wanted
    if nearest is None:
        return ""
    _, name, wanted = nearest
    place = tuple(int(one) for one in np.argwhere(np.abs(rows - wanted) > LOOSE)[0])
    return (
        f"; nor is its table one that the spec has: at {place} (position, column) it is "
        f"{rows[place]:.4g}, and {wanted[place]:.4g} with {name} columns"
    )
