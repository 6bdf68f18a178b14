"""From rotary positions that a user wrote to a backend: everything that is inferred is said."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from torch import nn

from attentest.results.text import summary
from attentest.targets.adapt.assumptions.choices import assumed, chosen, declared_choices
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.layouts import documented_layout
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import OBJECT, Reading, Unclear
from attentest.targets.adapt.rotary.angles import demand_even_angles
from attentest.targets.adapt.rotary.forms import LAYOUTS, Form, Maker, is_method
from attentest.targets.adapt.rotary.longer import demand_same_beyond
from attentest.targets.adapt.rotary.measuring import SIZES, Shown, kinds, precisions, shown
from attentest.targets.adapt.rotary.plain import PLAIN
from attentest.targets.adapt.rotary.rounded import with_single_tables
from attentest.targets.adapt.rotary.settings import with_settings
from attentest.targets.adapt.rotary.signatures import (
    SCALING,
    Arguments,
    arguments_of,
    needs_device,
    of_whole_tables,
    takes_tables,
    with_table,
)
from attentest.targets.definitions import undecorated
from attentest.targets.libraries import with_tensors
from attentest_spec import Limits
from attentest_spec.choices import Value
from attentest_spec.torch import DTYPES, Recipe, TorchBackend

COMPONENT = "rotary"

_NAMES = re.compile(
    r"(?!.*(head.*attention|(attention|attn|mha|gqa|mqa|mla)with|(attention|attn)(rope|rotary)$))"
    r"(.*(rotary|rope)"
    r"(?!.*(attention|attn|mha|mqa|gqa|mla|block|layer|model|config)).*"
    r"|.*freqscis)"
)
"""Names of code that turns queries and keys, or that makes the tables for it."""

_METHODS = ("forward", "__call__", "rotate_queries_or_keys", "rotate", "apply", "apply_rotary_emb")
"""Methods that are called, the likeliest first."""


@dataclass(frozen=True, kw_only=True)
class AdaptedRotary(TorchBackend):
    """A backend made of rotary positions; `understood` says how they are called.

    `fits` says whether the numbers are those of options.
    """

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""
    fits: bool = True


def is_rotary(thing: Any, reading: Reading, name: str) -> bool:
    """Say whether `thing` is taken for rotary positions: as you say, or by its name."""
    if reading.component:
        return reading.component == COMPONENT
    own = name or getattr(thing, "__name__", "")
    return named_rotary(own) and (inspect.isclass(thing) or inspect.isroutine(thing))


def named_rotary(name: str) -> bool:
    """Say whether a name says rotary positions, of themselves and not of what has them inside."""
    apart = _DROPS.sub("", name)  # `LayerDropEncoder` has no rope
    return _NAMES.fullmatch(squashed(apart)) is not None


_DROPS = re.compile(r"[Dd]rop(?=[A-Z_])|(?<![a-z])drop(?=[a-z])|[Pp]ropert(y|ies)")
"""Words whose letters, or those that follow, are not those of rope."""


_SEQUENCE_FIRST = (
    "assumed that the sequence is the first axis, x (T, B, H, D), as measured: if the batch is, "
    "this is a mistake; --strict does not assume it"
)


def of_class(thing: Any, own: str) -> Any:
    """Return `thing`; Unclear for an object, whose base would be lost with its class alone."""
    if isinstance(thing, nn.Module):
        raise Unclear(OBJECT.format(own))
    return thing


def adapt_rotary(
    thing: Any, reading: Reading, name: str = "", home: ModuleType | None = None
) -> AdaptedRotary:
    """Return rotary positions as a backend; Unclear where the numbers do not show how to call."""
    own = name or getattr(thing, "__name__", type(thing).__name__)
    module = home or sys.modules.get(getattr(thing, "__module__", "") or "")
    forms = list(_forms(thing, own, module, reading))
    if not forms:
        raise Unclear(
            f"{own} makes tables of rotary positions or takes them, and its file has no function "
            f"that belongs to it: one that takes x with cos and sin, or x with freqs_cis. Put both "
            f"into one file, or judge a class or function that takes x and returns it turned."
        )
    bases = [base for form in forms for base in form.maker.bases(SIZES)]
    found = shown(forms, bases)
    if not found:
        raise Unclear(
            f"{own} answered to no way of calling it with x (B, H, T, D) or (B, T, H, D)"
            f"{_refusal(forms)}. Name its arguments x, positions, cos, sin or freqs_cis, or say "
            f"which is which with --argument ROLE=NAME."
        )
    best = found[0]
    if best.wrong and not (reading.anyway or reading.choices):
        _ask_for_scaling(own, best)
        demand_even_angles(own, best.form)
    if best.wrong and not (best.sure or reading.anyway or reading.choices):
        raise Unclear(
            f"{own} turns x by no listed convention, and its first token is not as it was: whether "
            f"it was called as it should be is not certain. Say with --choice rotary_pairs=.. "
            f"--choice rotary_base=.. what it should be, or judge it with --anyway."
        )
    demand_same_beyond(own, best, reading)
    return _backend(own, best, reading)


def _refusal(forms: Sequence[Form]) -> str:
    """Return what building raises, in a clause; "" where it is built."""
    try:
        with undisturbed():
            forms[0].build(SIZES)
    except Exception as failure:  # code that a user wrote may raise anything
        return f"; building it raised {summary(failure, 120)}"
    return ""


def _ask_for_scaling(own: str, best: Shown) -> None:
    """Ask where the numbers are those of no option, and an argument scales the frequencies."""
    made = best.form.maker.made or best.form.maker.called
    if made.settings is not None and (fields := made.settings.scaling(SIZES)):
        raise Unclear(
            f"{own} turns x by no listed convention, and {' and '.join(fields)} of its settings "
            f"scale its frequencies, which is not inferred. Write an adapter that declares "
            f"rotary_scaling."
        )
    off = [own for own, one in made.defaults.items() if one is None or one is False]
    names = [one for one in made.defaults if SCALING.fullmatch(squashed(one)) and one not in off]
    factors = [one for one in names if isinstance(made.defaults[one], int | float)]
    if names and not set(names) & made.fixed.keys():
        unscaled = f"--give {factors[0]}=1 judges it without, or write" if factors else "Write"
        raise Unclear(
            f"{own} turns x by no listed convention, and {' and '.join(names)} scales its "
            f"frequencies by default, which is not inferred. {unscaled} an adapter that declares "
            f"rotary_scaling."
        )


def _backend(own: str, best: Shown, reading: Reading) -> AdaptedRotary:
    measured = {
        axis: best.choices[axis]
        for axis in best.choices.as_dict()
        if axis.startswith("rotary_") and axis not in ("rotary_scaling", "rotary_magnitude")
    }
    if measured["rotary_width"] == "whole":
        del measured["rotary_partial"]
    declared = declared_choices(_paper_by_name(measured), reading)
    form, cast = (best.form, "") if reading.strict else with_single_tables(best.form, best.choices)
    computes = precisions(form)
    said = [LAYOUTS[best.form.layout], *_said(best.form)]
    settings = form.maker.made.settings if form.maker.made is not None else None
    said += [settings.words] if settings is not None else []
    doubts = [*_pairs(declared, reading), *assumed(_rest(declared), reading)]
    doubts += [settings.assumed] if settings is not None and settings.assumed else []
    doubts += of_whole_tables(form.maker.made, form.maker.called, form.applied)
    doubts += [_SEQUENCE_FIRST] * (form.layout == "sequence-first")
    if cast:
        doubts.append(cast)
    elif missing := [one for one in DTYPES if one not in computes]:
        doubts.append(
            f"assumed that it is not used in {' and '.join(missing)}, in which its output has "
            f"another precision or there is none"
        )
    judged_as = f"{own} is judged as {COMPONENT}"
    return AdaptedRotary(
        name=own,
        title=f"{own}, read as {COMPONENT}",
        recipes={COMPONENT: Recipe(form.build, form)},
        choices=declared,
        limits=Limits(dropout=False, positions=kinds(form), precisions=computes),
        understood=(judged_as, *doubts, *said, *chosen(declared, reading)),
        assumed=tuple(doubts),
        summary=f"{own} called with {'; '.join(said)}",
        fits=not best.wrong,
    )


def _paper_by_name(measured: dict[str, Value]) -> dict[str, Value]:
    """Return the choices with the base of Su et al. 2021 by its name."""
    return measured | ({"rotary_base": "10000"} if measured["rotary_base"] == 1e4 else {})


def _rest(declared: dict[str, Value]) -> dict[str, Value]:
    return {name: one for name, one in declared.items() if name != "rotary_pairs"}


def _pairs(declared: dict[str, Value], reading: Reading) -> Iterator[str]:
    """Yield the pairs that the numbers show: which ones are meant depends on the weights."""
    if "rotary_pairs" not in reading.choices:
        columns = {"adjacent": "2i and 2i + 1", "halves": "i and i + r/2"}
        other = {"adjacent": "halves", "halves": "adjacent"}
        found = str(declared.get("rotary_pairs", "adjacent"))
        yield (
            f"assumed rotary_pairs={found} (columns {columns[found]}), as measured: weights that "
            f"were trained with {other[found]} need --choice rotary_pairs={other[found]}"
        )


def _said(form: Form) -> Iterator[str]:
    """Yield how positions are given, and what turns x."""
    yield {
        "batch": "positions (B, T) as an argument",
        "row": "positions (T,) as an argument",
        "offset": "the number of the first position as an argument",
        "offset-array": "the numbers (B,) of the first positions as an argument",
        "rows": "the rows of its table at the positions",
        "length": "the length as an argument; positions cannot be given",
        "": "no positions: they cannot be given",
    }[form.style]
    if form.apply in PLAIN:
        yield "it makes tables alone: x is turned by them in the pairs that their columns show"
    elif form.apply is not None:
        yield f"its tables are applied by {form.apply.__name__}"


def _forms(thing: Any, own: str, module: ModuleType | None, reading: Reading) -> Iterator[Form]:
    """Yield the ways of calling `thing`, together with what belongs to it in its file."""
    contrary = reading.strict or documented_layout(inspect.getdoc(thing) or "") == "batch-first"
    layouts = [one for one in LAYOUTS if one != "sequence-first" or not contrary]
    for maker, apply in _pairs_of(thing, own, module, reading):
        plain = apply in PLAIN
        own_words = Reading() if plain else reading
        applied = None if apply is None else _with_tables(apply, own_words)
        for style in _styles(maker, applied):
            for layout in layouts[:1] if plain else layouts:
                yield Form(maker, apply, applied, layout, style)


def _pairs_of(
    thing: Any, own: str, module: ModuleType | None, reading: Reading
) -> Iterator[tuple[Maker, Callable[..., Any] | None]]:
    """Yield makers with the functions that apply their tables, None where x itself is turned."""
    makers = list(_makers(thing, own, reading))
    for maker in makers:
        if "x" in maker.called.roles and not takes_tables(maker.called):
            yield maker, None
    applying = tuple(_beside(module, thing, reading))
    for maker in makers:
        if not takes_tables(maker.called):
            for apply in applying or PLAIN:
                yield maker, apply
    if inspect.isclass(thing):
        return
    certain = any(takes_tables(one.called) for one in makers)
    if certain or _with_tables(thing, reading) is not None:
        for other in _others(module, thing, reading):
            if _makes_tables(other, module):
                named = other.__name__
                for maker in _makers(other, named, Reading()) if certain else _tried(other):
                    yield maker, thing


def _with_tables(apply: Callable[..., Any], reading: Reading) -> Arguments | None:
    """Return the arguments of a function that takes tables, None where none of them carries one."""
    arguments = arguments_of(apply, apply.__name__, reading)
    said = takes_tables(arguments) or "positions" in reading.arguments
    return arguments if said else with_table(arguments)


def _makes_tables(thing: Any, module: ModuleType | None) -> bool:
    """Say whether something in the file may make the tables that another function takes."""
    if module is None or getattr(thing, "__module__", "") != module.__name__:
        return False
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return False
    if named_rotary(thing.__name__):
        return not any(takes_tables(one.called) for one in _tried(thing))
    return inspect.isfunction(thing) and any(
        {"length", "width"} <= one.called.roles.keys() for one in _tried(thing)
    )


def _tried(thing: Any) -> list[Maker]:
    try:
        return list(_makers(thing, thing.__name__, Reading()))
    except (Unclear, TypeError, ValueError):
        return []


def _beside(module: ModuleType | None, thing: Any, reading: Reading) -> Iterator[Any]:
    """Yield the functions of the file that take x and tables, those for queries and keys first."""
    found = []
    for one in _others(module, thing, reading):
        if not inspect.isfunction(one) or one.__module__ != module.__name__:  # type: ignore[union-attr]
            continue
        try:
            arguments = _with_tables(one, reading)
        except Unclear:
            continue
        if arguments is not None and "x" in arguments.roles and takes_tables(arguments):
            found.append((not named_rotary(one.__name__), "key" not in arguments.roles, one))
    yield from (one for *_, one in sorted(found, key=lambda one: one[:2]))


def _others(module: ModuleType | None, thing: Any, reading: Reading) -> Iterator[Any]:
    """Yield what else the file holds, functions of arrays as functions of tensors."""
    own = undecorated(thing)
    for other in list(vars(module).values()) if module else []:
        if undecorated(other) is not own:
            yield with_tensors(other, rounded=not reading.strict)


def _makers(thing: Any, own: str, reading: Reading) -> Iterator[Maker]:
    """Yield the ways of building and calling `thing`."""
    if not inspect.isclass(thing):
        yield Maker(thing, None, arguments_of(thing, own, reading))
        return
    made = with_settings(thing, arguments_of(thing, own, reading, builds=True), reading, SIZES)
    if "device" in made.roles:  # a fixed one would be wrong where x lies on another
        raise needs_device(made.roles["device"], own)
    module, found = issubclass(thing, nn.Module), False
    for method in _METHODS:
        if not is_method(thing, method) or (module and method == "__call__"):
            continue
        try:
            called = arguments_of(getattr(thing, method), f"{own}.{method}", reading)
        except Unclear:
            if found:  # another method is called
                continue
            raise
        found = True
        called_as = "" if method in ("forward", "__call__") else method
        yield Maker(thing, made, called, called_as)
        if called.roles.get("x") == "t" and "positions" not in called.roles:
            places = {role: name for role, name in called.roles.items() if role != "x"}
            yield Maker(thing, made, replace(called, roles=places | {"positions": "t"}), called_as)


def _styles(maker: Maker, applied: Arguments | None) -> Iterator[str]:
    """Yield how positions may be given, the most general first."""
    roles: set[str] = {*maker.called.roles, *(applied.roles if applied else ())}
    if "positions" in roles:
        yield from ("batch", "row", "offset")
    if "offset" in roles:
        yield from ("offset", "offset-array")
    if applied is not None:
        yield "rows"
    if maker.made is not None and "length" in maker.called.roles:
        yield "length"
    if not roles & {"positions", "offset"}:  # an argument that is ignored is a mistake
        yield ""
