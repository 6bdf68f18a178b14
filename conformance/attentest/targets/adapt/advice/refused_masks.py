"""The question about masks that are accepted in no form."""

from collections.abc import Sequence

from attentest.targets.adapt import masks
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.reading import GUIDE, Attempt, Unclear
from attentest.targets.signatures import constructor_arguments


def refusal(code: Code, adapter: Adapter, refused: Sequence[str]) -> Unclear:
    """Return the question about masks that are not accepted in any form.

    It names those that would be taken for masks without them, too: one answer is enough. No
    meaning of the entries is asked for: all were tried.
    """
    used = {*adapter.arguments.roles.values(), *adapter.arguments.fixed, adapter.arguments.padding}
    rest = [
        own
        for own, one in adapter.signature.parameters.items()
        if "mask" in squashed(own) and one.default is None
    ]
    without = dict.fromkeys([*refused, *(one for one in rest if one not in used)])
    made = constructor_arguments(code.construction.make) if code.construction else {}
    flags = [own for own, one in made.items() if one.default is True and "mask" in squashed(own)]
    ways = [without, *({**without, own: False} for own in flags)]
    return Unclear(
        f"No form of mask that was tried is accepted as {' or '.join(refused)} of {code.name}: "
        f"{', '.join([*masks.SHAPES, *masks.LENGTHS])}; booleans, 0 and 1, added."
        f"{' It can be judged without a mask.' * (not adapter.needs_mask)}",
        f"Write a backend by hand, as {GUIDE} shows.",
        attempts=[Attempt(given=one) for one in ways] * (not adapter.needs_mask),
    )
