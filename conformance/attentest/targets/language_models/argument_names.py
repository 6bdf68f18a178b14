"""Names of the arguments of decoder-only models, and the one that carries the tokens."""

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import OFF, ROLES, words
from attentest.targets.language_models.surrounded.modules import signature_of

TOKENS = (*ROLES["tokens"], *words("inidx inputtokenids inputtokens tok t"))
"""Names of the ids of tokens."""

LABELS = words("targets target labels label lmlabels y")
MASKS = words("attentionmask paddingmask keypaddingmask padmask attnmask mask keepmask padding")
SURE_MASKS = words("attentionmask paddingmask keypaddingmask padmask")
POSITIONS = words("positionids positions pos posids position inputpos inputpositions")
SURE_POSITIONS = words("positionids positions posids")
STARTS = words(
    "startpos start offset startindex pastlength cachelen poffset posoffset pastlen pastseqlen "
    "positionoffset startidx cachelength prefixlen startposition numpast pastlens"
)
"""Names of the number of tokens that came before."""

CACHES = words(
    "pastkeyvalues pastkeyvalue past pastkv pastkvs layerpast kvcache kvcaches cache caches "
    "kvpast kcache pastcache cachekv presents kv kvs"
)
"""Names of the argument that takes what was computed of the tokens before."""

_OF_CACHES = re.compile(r"(?i)(^|_)(pasts?|cached?|caches|kvs?|kv_?caches?)(_|$)")
_NO_CACHE = re.compile(
    r"(?i)use|return|update|reset|enabl|pos|len|siz|idx|index|start|offset|ids?$|mask|num|max|"
    r"count|pad|encod|cross|memor|head|dim"
)
"""Words of arguments that say something of a cache: whether there is one, how long it is."""


def caches_named(own: Mapping[str, inspect.Parameter]) -> list[str]:
    """Return the arguments that take a cache: by the usual names, or else by a word of theirs.

    Those are left out by default then, and are no switch and no number.
    """
    held = {squashed(one): one for one in own}
    usual = [held[one] for one in CACHES if one in held]
    return usual or [name for name, one in own.items() if _may_be_cache(name, one)]


def _may_be_cache(name: str, parameter: inspect.Parameter) -> bool:
    plain = re.search(r"\b(bool|int)\b", inspect.formatannotation(parameter.annotation))
    worded = _OF_CACHES.search(name) and not _NO_CACHE.search(name)
    return bool(worded) and parameter.default is None and not plain


AT_START: Mapping[str, Any] = {
    **OFF,
    **dict.fromkeys(STARTS, 0),
    **dict.fromkeys(words("cache kvcache pastkeyvalues past caches"), None),
    **dict.fromkeys(words("usecache"), False),
}
"""Value of a required argument that says where a text begins, or holds what was before."""


def tokens_named(own: Mapping[str, inspect.Parameter]) -> str:
    """Return the argument that carries the tokens: one that must be given, before all others."""
    others = (*MASKS, *POSITIONS, *LABELS)
    required = {name: one for name, one in own.items() if one.default is inspect.Parameter.empty}
    plain = [one for one in required if squashed(one) not in others]
    alone = plain[0] if len(plain) == 1 else ""
    return first_named(required, TOKENS) or alone or first_named(own, TOKENS) or next(iter(own), "")


def is_none(parameter: inspect.Parameter) -> bool:
    """Say whether an argument is annotated as one that is always None."""
    return parameter.annotation in (None, "None", type(None))


def first_named(own: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the argument of the first of `names` that there is, "" for none."""
    held = {squashed(one): one for one in own}
    return next((held[one] for one in names if one in held), "")


_NO_COUNT = re.compile("keep|logit|top|label|layer|seed|pad|tokens?$|id$")
"""Names of whole numbers that are 0 and count no tokens."""


def counts(model: nn.Module) -> list[str]:
    """Return what may carry the number of tokens before: by its name, or any argument that is 0."""
    own = signature_of(model).parameters
    named = {squashed(one): one for one in own}
    known = [named[one] for one in STARTS if one in named]
    zeros = [name for name, one in own.items() if type(one.default) is int and one.default == 0]
    return known[:1] or [one for one in zeros if not _NO_COUNT.search(one.lower())]


def takes_more(model: nn.Module) -> bool:
    """Say whether a call takes keywords that nothing names, as positions that layers read."""
    kinds = [one.kind for one in signature_of(model).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds
