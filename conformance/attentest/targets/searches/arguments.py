"""The arguments of a decoding function: which of them carries what, by their names."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.searches.stand_in import globals_named, names

ROLES: Mapping[str, frozenset[str]] = {
    "model": names("model transformer net network m module"),
    "source": names(
        "src source srctokens inputids encoderinput encinput x inputs tokens srcids inputseq "
        "srcseq sourcetokens inputtensor srctensor encoderinputs input"
    ),
    "source_mask": names(
        "srcmask sourcemask mask srcpadmask encodermask attentionmask srcpaddingmask "
        "srckeypaddingmask"
    ),
    "length": names(
        "maxlen maxlength maxseqlen maxtargetlen maxtokens maxnewtokens length steps numsteps "
        "maxsteps seqlen tgtlen maxoutlen maxdecodelen numtokens"
    ),
    "start": names(
        "startsymbol start starttoken startid starttokenid startidx sos sosid sosidx sostoken "
        "sostokenid bos bosid bosidx bostoken bostokenid sosindex bosindex"
    ),
    "begin": names(
        "tgt trg ys begin prefix prompt decoderinputids tgttokens given decinput decoderinput"
    ),
    "end": names(
        "endsymbol end endtoken endid endtokenid endidx eos eosid eosidx eostoken eostokenid "
        "eosindex stoptoken stopid eossymbol"
    ),
    "pad": names("pad padid padidx padtoken padtokenid padsymbol padvalue padindex paddingidx"),
    "device": names("device dev"),
}
"""The names that carry what a decoding function needs, without underscores and capitals."""

BEAM_ROLES: Mapping[str, frozenset[str]] = {
    **ROLES,
    "beams": names("beamsize beamwidth numbeams nbeams k beam beams width bw beamk beamcount"),
    "alpha": names(
        "alpha lengthpenalty lenpenalty lengthalpha lengthpenaltyalpha lp lengthnormalpha "
        "lengthnorm lengthnormalization lengthpenaltyweight penalty lengthpenaltycoefficient"
    ),
}
"""The names that carry what a beam search needs besides."""

NEEDED = ("model", "source", "length")


@dataclass(frozen=True)
class Roles:
    """The role of every argument, the globals that carry ids, and arguments that are fixed."""

    arguments: Mapping[str, str]
    globals_of: Mapping[str, str]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def has(self, role: str) -> bool:
        """Say whether an argument or a global carries `role`."""
        return role in self.arguments or role in self.globals_of

    @property
    def words(self) -> str:
        """The call, in words."""
        own = ", ".join(f"{role}={name}" for role, name in self.arguments.items())
        rest = "".join(f", {role} as the global {name}" for role, name in self.globals_of.items())
        return f"called ({own}){rest} (by the signature)"


def roles_of(
    function: Callable[..., Any], name: str, reading: Reading, component: str = "greedy_decoding"
) -> Roles:
    """Return what the arguments of `function` carry; Unclear where that is a question."""
    known = BEAM_ROLES if component == "beam_search" else ROLES
    signature = inspect.signature(function)
    found: dict[str, str] = {}
    fixed = {one: value for one, value in reading.given.items() if one in signature.parameters}
    for argument in signature.parameters:
        role = _role(argument, reading, known)
        if role and role not in found and argument not in fixed:
            found[role] = argument
    outside = {
        role: held
        for role in ("start", "end", "pad", "device")
        if role not in found
        for held in list(globals_named(function, ROLES[role]))[:1]
    }
    roles = Roles(found, outside, fixed)
    needed = (*NEEDED, "beams") if component == "beam_search" else NEEDED
    missing = [role for role in needed if role not in found]
    if not (roles.has("start") or roles.has("begin")):
        missing.append("start")
    unknown = [
        one.name
        for one in signature.parameters.values()
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and one.name not in {*found.values(), *fixed}
    ]
    if missing or unknown:
        raise Unclear(_question(name, component, signature, missing, unknown))
    return roles


def _role(argument: str, reading: Reading, known: Mapping[str, frozenset[str]]) -> str:
    said = next((role for role, own in reading.arguments.items() if own == argument), "")
    own = squashed(argument)
    return said or next((role for role, names in known.items() if own in names), "")


def _question(
    name: str,
    component: str,
    signature: inspect.Signature,
    missing: list[str],
    unknown: list[str],
) -> str:
    asked = [f"which argument carries the {role}" for role in missing]
    asked += [f"what to give for {one}" for one in unknown]
    adds = [f"--argument {role}=NAME" for role in missing]
    adds += [f"--give {one}=VALUE" for one in unknown if not missing]
    return (
        f"{name}({', '.join(signature.parameters)}) was taken for {component}, and nothing in "
        f"it says {' and '.join(asked)}. Add {' '.join(adds)} (in Python: arguments={{ROLE: NAME}} "
        f"and given={{NAME: VALUE}}); the roles are {', '.join(BEAM_ROLES)}."
    )


@contextmanager
def with_globals(function: Callable[..., Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Set globals that `function` reads for the time of a call."""
    space = getattr(function, "__globals__", {})
    before = {name: space[name] for name in values}
    space.update(values)
    try:
        yield
    finally:
        space.update(before)
