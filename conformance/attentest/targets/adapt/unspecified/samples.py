"""Masks whose code cuts them to the length of the sequence, and with it the samples.

`mask[:length, :length]` leaves a mask (B, 1, Q, K) as it is where it has fewer samples than the
sequence has positions, and cuts samples off where it has more: it is meant for masks (T, T).
"""

from dataclasses import replace

from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.masks import Style
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Attempt, Unclear

_MANY = 9
"""A number of samples that is larger than the probed numbers of queries and keys."""


def demand(name: str, probe: Probe, adapter: Adapter, slot: str, style: Style, keys: int) -> None:
    """Raise Unclear where a mask of `style` is taken for few samples, and not for many."""
    if style.shape != "broadcast" or slot not in adapter.arguments.roles:
        return
    many = replace(probe, batch=_MANY)
    keys = probing.keys_of(adapter, slot, keys)
    tried = replace(adapter, styles={**adapter.styles, slot: style})
    given = many.given(tried, keys=keys)
    if isinstance(many.called(tried, given), str):
        return  # so many samples are refused without a mask, too
    shown = probing.masks_for(style, many, tried, keys)
    for keep in shown[-1:] if adapter.arguments.padding else shown:  # a narrow one is of padding
        if isinstance(many.called(tried, {**given, slot: keep}), str):
            own = adapter.arguments.roles[slot]
            raise Unclear(
                f"{name} takes a mask (B, 1, Q, K) as {own} where there are fewer samples than "
                f"positions, and refuses it where there are more: it may be meant for one mask "
                f"(T, T) alone, and cut it to the length of a sequence.",
                attempts=[] if adapter.needs_mask else [Attempt(given={own: None})],
            )
