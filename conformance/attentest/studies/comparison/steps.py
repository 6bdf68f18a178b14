"""The steps of several backends side by side, and where they part."""

from collections.abc import Sequence

from attentest.studies.comparison.example import Example
from attentest.studies.comparison.parts import BOUND, Departure, StepRow
from attentest.studies.comparison.recording import Place, Recording, apart


def aligned(recordings: Sequence[Recording]) -> list[Place]:
    """Return all steps in one order, that of the first where it has them."""
    order: list[Place] = []
    for recording in recordings:
        last = 0
        for place in recording:
            if place in order:
                last = order.index(place) + 1
            else:
                order.insert(last, place)
                last += 1
    return order


def rows(recordings: Sequence[Recording], example: Example) -> tuple[StepRow, ...]:
    """Return how far each of `recordings` is from the first at every step."""
    return tuple(
        StepRow(
            str(place),
            tuple(one[place].output.shape if place in one else None for one in recordings),
            *(
                tuple(
                    _apart(recordings[0], one, place, example, given=given)
                    for one in recordings[1:]
                )
                for given in (False, True)
            ),
        )
        for place in aligned(recordings)
    )


def parting(one: Recording, other: Recording, example: Example, room: float = BOUND) -> Departure:
    """Return where `other` leaves `one`: the first step that is apart by more than `room`."""
    step, inside, furthest = "", False, 0.0
    for place in aligned([one, other]):
        difference = _apart(one, other, place, example)
        if difference is None:
            continue
        if difference > room and not step:
            before = _apart(one, other, place, example, given=True)
            step, inside = str(place), before is None or before <= room
        furthest = max(furthest, difference)
    return Departure(step, inside, furthest)


def _apart(
    one: Recording, other: Recording, place: Place, example: Example, *, given: bool = False
) -> float | None:
    if place not in one or place not in other:
        return None
    return apart(one[place], other[place], place, example, given=given)
