"""Recognises heads of keys and values that are dealt out to the query heads in turn.

Query head h reads key head h mod G, and not h // (H/G). That is the formula with its query heads in
another order, as long as nobody loads parameters of another implementation.
"""

from attentest.analysis.diagnosis.variants import singles
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.encoders.idle_norms import gives
from attentest.targets.adapt.parameters.behaviour import observe
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.probing import undisturbed
from attentest_spec import Choices

_DEALT_OUT = "multi_head_attention.shared-heads-tiled"
_HEADS, _KEY_HEADS = 6, 2
"""Numbers of heads at which the two orders differ."""


def in_turn(code: Code, adapter: Adapter, found: FoundTable, known: Choices) -> str:
    """Return what is said of key heads that are dealt out in turn, "" where they are not."""
    seen = found.observed
    if "kv_heads" not in code.known or seen is None or not found.table:
        return ""
    declared = known.but(key_heads="fewer")
    sizes = seen.sizes.but(d_model=4 * _HEADS, heads=_HEADS, kv_heads=_KEY_HEADS)
    dealt = [one for one in singles(declared, code.component, "") if one.names == (_DEALT_OUT,)]
    try:
        with undisturbed():
            module = code.build(sizes).double().eval()
            run = observe(module, adapter, code.component, sizes)
            shown = Observed(module, sizes, run)
            fits = any(gives(one, code.component, found.table, shown) for one in dealt)
    except Exception:  # code that a user wrote may raise anything
        return ""
    return fits * (
        "its heads of keys and values are dealt out to the query heads in turn (query head h reads "
        "key head h mod G): the formula with its query heads in another order, and a mistake where "
        "parameters of another implementation are loaded, whose query heads share a key head in "
        "rows (h // (H/G))"
    )
