"""Recognises heads of keys and values that are dealt out to the query heads in turn.

Query head h reads key head h mod G, and not h // (H/G). That is the formula with its query heads in
another order, as long as no parameters of another implementation are loaded.
"""

from attentest.analysis.diagnosis.variants import singles
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.idle_norms import gives
from attentest.targets.adapt.names import KEY_HEADS
from attentest.targets.adapt.parameters.behaviour import observe
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.signatures import constructor_arguments
from attentest_spec import Choices

_DEALT_OUT = "multi_head_attention.shared-heads-tiled"
_PUBLISHED = (
    {"qproj", "kproj", "vproj"},
    {"wq", "wk", "wv"},
)
"""Names of projections in published parameters, whose query heads share a key head in rows."""

_HEADS, _KEY_HEADS = 6, 2
"""Numbers of heads at which the two orders differ."""


def in_turn(code: Code, adapter: Adapter, found: FoundTable, known: Choices) -> str:
    """Return what is said of key heads that are dealt out in turn, "" where they are not.

    It is a mistake in code whose projections have the names of published parameters.
    """
    seen = found.observed
    if "kv_heads" not in code.known or seen is None or not found.table:
        return ""
    names = {squashed(one) for path, _ in seen.module.named_parameters() for one in path.split(".")}
    if any(published <= names for published in _PUBLISHED):
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
    ) + fits * _advice(code)


def _advice(code: Code) -> str:
    """Return the option that judges it with as many key heads, "" where it has no such option."""
    arguments = constructor_arguments(code.construction.make) if code.construction else {}
    may = [own for own, one in arguments.items() if one.default is None]
    own = next((one for one in may if squashed(one) in KEY_HEADS), "")
    return f"; --give {own}=None judges it with as many key heads as heads" if own else ""
