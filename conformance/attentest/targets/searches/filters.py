"""The arguments, methods and names of functions and classes that sample or filter logits."""

import inspect
import re
from collections.abc import Mapping
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.searches.stand_in import names

ROLES: Mapping[str, frozenset[str]] = {
    "logits": names("logits logit scores x nexttokenlogits lastlogits output outputs predictions"),
    "temperature": names("temperature temp t tau samplingtemp"),
    "top_k": names("topk k keeptopk"),
    "top_p": names("topp p nucleus nucleusp topprob keeptopp"),
    "generator": names("generator rng gen"),
    "sampler": names("sampler basesampler innersampler"),
}
SHARES = names("thres threshold filterthres filterthreshold share fraction")
"""Arguments of a filter that its name says: `top_k(logits, thres)` leaves out a share of tokens."""

METHODS = ("sample", "filter", "__call__", "forward")
"""Methods of classes that sample, the likeliest first."""


def is_off_at_zero(function: Any, own: str) -> bool:
    """Say whether the code of `function` asks if the argument `own` is more than 0."""
    try:
        written = inspect.getsource(function) if own else ""
    except (OSError, TypeError):
        return False
    return re.search(rf"\b{own}\s*(>|!=)\s*0(\.0*)?\b(?!\.)", written) is not None


def takes_logits(thing: Any) -> bool:
    """Say whether `thing` is a function, or a class with a method that takes logits."""
    if not inspect.isclass(thing):
        return inspect.isroutine(thing)
    held = next((vars(thing)[one] for one in METHODS if callable(vars(thing).get(one))), None)
    arguments = inspect.signature(held).parameters if held is not None else ()
    return any(squashed(one) in ROLES["logits"] for one in arguments)


def filter_named(thing: Any, name: str) -> bool:
    """Say whether `thing` is a function of logits that is called by the filter that it is."""
    if not inspect.isfunction(thing) or squashed(name) not in {*ROLES["top_k"], *ROLES["top_p"]}:
        return False
    first = next(iter(inspect.signature(thing).parameters), "")
    return squashed(first) in ("logits", "logit")


def begins_as(name: str, role: str) -> bool:
    """Say whether the name of a function begins with that of the filter `role`, or is that."""
    return squashed(name).startswith(squashed(role))
