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


ONE_FOR_ALL = (
    "; assumed that it is one mask (T, T) for all samples, since the code cuts it to the length of "
    "a sequence: a mask (B, 1, Q, K) of more samples than positions is refused"
)


def settled(
    name: str,
    probe: Probe,
    adapter: Adapter,
    slot: str,
    style: Style,
    keys: int,
    *,
    strict: bool = False,
) -> tuple[Style, str]:
    """Return the style of a mask, and what is assumed where it is taken for few samples alone.

    A mask that can be given as one for all samples is read as that. Raises Unclear for others, and
    for each of them where the reading is `strict`.
    """
    if style.shape != "broadcast" or slot not in adapter.arguments.roles:
        return style, ""
    many = replace(probe, batch=_MANY)
    keys = probing.keys_of(adapter, slot, keys)
    tried = replace(adapter, styles={**adapter.styles, slot: style})
    given = many.given(tried, keys=keys)
    if isinstance(many.called(tried, given), str):
        return style, ""  # so many samples are refused without a mask, too
    shown = probing.masks_for(style, many, tried, keys)
    narrow = shown[-1:] if adapter.arguments.padding else shown  # a narrow one is of padding
    if not any(isinstance(many.called(tried, {**given, slot: keep}), str) for keep in narrow):
        return style, ""
    alike = [replace(style, shape="per pair")] * (not strict)
    found, _ = probing.style_shown(many, adapter, slot, (style.meaning,), keys, ("per pair",))
    if found in alike:
        return found, ONE_FOR_ALL
    own = adapter.arguments.roles[slot]
    raise Unclear(
        f"{name} takes a mask (B, 1, Q, K) as {own} where there are fewer samples than positions, "
        f"and refuses it where there are more: it may be meant for one mask (T, T) alone, and cut "
        f"it to the length of a sequence.",
        attempts=[] if adapter.needs_mask else [Attempt(given={own: None})],
    )
