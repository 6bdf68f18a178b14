"""The roles of the arguments of code that turns queries and keys, by their names."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import words
from attentest.targets.adapt.reading import Reading, Unclear
from attentest_spec import Sizes

ROLES: Mapping[str, frozenset[str]] = {
    role: frozenset(words(names))
    for role, names in {
        "width": "dim headdim d dhead dk dimhead headsize rotarydim rotaryndims headwidth "
        "rotarysize ndims dims nelem dimperhead hdim embeddingdims rotarydimension dimensions",
        "d_model": "dmodel hiddensize embdim embeddim nembd modeldim hiddendim width embeddingdim "
        "embeddingsize",
        "heads": "heads nheads nhead numheads numattentionheads nheadsq numqheads h",
        "length": "maxseqlen maxpositionembeddings end seqlen maxlen blocksize contextlength "
        "maxseqlength nctx maxlength maxpositions maxsequencelength seqlength length contextwindow "
        "maxpos contextsize maxcontext maxcontextlength maxtokens maxposition maxseq "
        "sequencelength",
        "base": "base theta ropetheta ropebase rotarybase freqbase freqsbase thetabase",
        "x": "x q query xq states querystates input inputs queries tensor inp qorx z t features",
        "key": "k key xk keystates keys",
        "positions": "positions positionids pos inputpos tokenpositions posids position indices "
        "inputpositions positionindices idx",
        "offset": "offset startpos start seqoffset pastlength pastlen shift startindex",
        "cosines": "cos coses freqscos cosine cosines rotarycos cost cosemb ropecos costable "
        "coscache cosvalues coscached cosfreqs cospos cosembed cosembedding",
        "sines": "sin sins freqssin sine sines rotarysin sint sinemb ropesin sintable sincache "
        "sinvalues sincached sinfreqs sinpos sinembed sinembedding",
        "table": "freqscis freqs ropecache freqscomplex angles rotaryfreqs table cache freqcis "
        "freqstable cossin rope pe rotaryemb posemb positionembeddings rotarype f freqsc rot",
        "device": "device",
    }.items()
}
"""Words for each role; the first role that has the word counts."""

CONFIGS = ("config", "cfg", "args", "params", "configuration", "modelargs", "settings")
"""Names of arguments that get an object with all sizes."""


class Configuration:
    """An object whose attributes are sizes, by the names that code has for them."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def __getattr__(self, name: str) -> Any:
        """Return the size of that name; AttributeError where it is none."""
        role = "" if name.startswith("_") else role_of(name)
        if role in ("base", "") or role not in BUILT:
            raise AttributeError(name)
        return value_of(role, self._sizes)


BUILT = ("width", "d_model", "heads", "length", "base")
"""The roles of arguments that are sizes."""


def role_of(name: str) -> str:
    """Return the role of an argument called `name`, "" for none."""
    word = squashed(name)
    return next((role for role, known in ROLES.items() if word in known), "")


def value_of(role: str, sizes: Sizes) -> Any:
    """Return the number that an argument with a role in :data:`BUILT` gets."""
    width = sizes.d_model // sizes.heads
    return {
        "width": width,
        "d_model": sizes.d_model,
        "heads": sizes.heads,
        "length": sizes.max_length,
        "base": 10_000,
    }[role]


SCALING = re.compile(r"(rope|ntk|linear|position|scaling)?(factor|scale|scaling)")
"""Names of arguments, and of fields of settings, that scale the frequencies."""


class MadeSettings(Protocol):
    """An object of settings for sizes, with the numbers among its fields."""

    @property
    def words(self) -> str:
        """The expression that builds it."""

    @property
    def assumed(self) -> str:
        """The assumption about its class, "" for none."""

    def __call__(self, sizes: Sizes) -> Any:
        """Return the object for `sizes`."""

    def bases(self, sizes: Sizes) -> list[float]:
        """Return the bases among its fields."""

    def scaling(self, sizes: Sizes) -> list[str]:
        """Return the fields that scale the frequencies."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a function: the role of each, those that are fixed, and defaults.

    `settings` makes the object that its settings are, None where this has nothing but sizes.
    """

    roles: Mapping[str, str]
    fixed: Mapping[str, Any]
    defaults: Mapping[str, Any]
    settings: MadeSettings | None = None

    @property
    def base(self) -> float | None:
        """The default of the argument that carries the base, None where there is none."""
        own = self.roles.get("base")
        value = self.defaults.get(own) if own else None
        return float(value) if isinstance(value, int | float) else None

    def with_settings(self, settings: MadeSettings) -> "Arguments":
        """Return them with the class of `settings`."""
        return replace(self, settings=settings)

    def given(self, **values: Any) -> dict[str, Any]:
        """Return the arguments for `values` by their roles; a role without an argument is none."""
        named = {self.roles[role]: one for role, one in values.items() if role in self.roles}
        return {**self.fixed, **named}


def arguments_of(
    call: Callable[..., Any], own: str, reading: Reading, *, builds: bool = False
) -> Arguments:
    """Return the roles of the arguments of `call`; Unclear for one that nothing explains.

    The one that is left where `call` `builds` is the width: the numbers show whether it is.
    """
    said = {name: role for role, name in reading.arguments.items()}
    roles: dict[str, str] = {}
    fixed: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    unknown: list[str] = []
    for name, one in inspect.signature(call).parameters.items():
        if name == "self" or one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        role = said.get(name) or role_of(name)
        if one.default is not inspect.Parameter.empty:
            defaults[name] = one.default
        if name in reading.given:
            fixed[name] = reading.given[name]
        elif _is_half(one.default) and not reading.strict:
            fixed[name] = torch.float32
        elif squashed(name) in CONFIGS:
            roles["config"] = name
        elif role and role not in roles and not (role == "device" and name in defaults):
            roles[role] = name
        elif name not in defaults:
            unknown.append(name)
    if builds and len(unknown) == 1 and not roles.keys() & {"width", "d_model", "config"}:
        roles["width"] = unknown.pop()
    if unknown:
        raise unexplained(unknown[0], own)
    if "d_model" in roles and not roles.keys() & {"width", "heads"}:
        roles["width"] = roles.pop("d_model")  # without heads it is the width of what is turned
    return Arguments(roles, fixed, defaults)


_HALVES = (torch.bfloat16, torch.float16)
"""The precisions in which a table is rounded, and float32 is given where one is the default."""


def _is_half(default: Any) -> bool:
    return isinstance(default, torch.dtype) and default in _HALVES


def of_whole_tables(*of_all: Arguments | None) -> Iterator[str]:
    """Yield the assumption about each argument that makes tables in float32, and not by default."""
    for arguments in filter(None, of_all):
        for own, value in arguments.fixed.items():
            usual = arguments.defaults.get(own)
            if value is torch.float32 and _is_half(usual):
                yield (
                    f"assumed {own}={value}: with its default {usual} the tables are rounded, and "
                    f"are right for inputs in that precision alone; --strict judges them so"
                )


def unexplained(name: str, own: str) -> Unclear:
    """Return the question about the argument `name` of `own`."""
    return Unclear(
        f"Nothing says what the argument {name!r} of {own} carries. Say it with --argument "
        f"ROLE={name}, ROLE being one of {', '.join(ROLES)}, or fix it with --give {name}=VALUE."
    )


def needs_device(name: str, own: str) -> Unclear:
    """Return the question about the argument `name` of `own`, the device of what it builds."""
    return Unclear(
        f"{own} is built for one device, that of {name!r}, and nothing says which. --give "
        f"{name}=cpu builds it on the CPU."
    )


def with_table(arguments: Arguments) -> Arguments | None:
    """Return `arguments` with the table in the place of positions (`pos`), None where none fits."""
    roles = arguments.roles
    if takes_tables(arguments) or not {"x", "positions"} <= roles.keys():
        return None
    others = {role: name for role, name in roles.items() if role != "positions"}
    return replace(arguments, roles=others | {"table": roles["positions"]})


def takes_tables(arguments: Arguments) -> bool:
    """Say whether an argument carries cosines, complex numbers or angles."""
    return bool({"cosines", "table"} & arguments.roles.keys())


def built_with(arguments: Arguments, sizes: Sizes) -> dict[str, Any]:
    """Return the arguments of a constructor, or of a function that makes tables, at `sizes`.

    A base with a default keeps it.
    """
    wanted = {
        role: value_of(role, sizes)
        for role in BUILT
        if role in arguments.roles
        and not (role in ("base", "heads") and arguments.roles[role] in arguments.defaults)
    }
    made = arguments.settings or Configuration
    return arguments.given(**wanted, config=made(sizes))
