"""Settings that a decoder-only model is made with: the fields that its constructor reads."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import OF_EXPERTS, SIZES, words
from attentest.targets.adapt.objects.keyword_settings import KeptFields
from attentest.targets.adapt.objects.made_settings import made_settings
from attentest.targets.adapt.objects.settings import (
    is_configuration,
    is_plain,
    is_unpacked,
    settings_doubts,
)
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.construction.code import may_be_none, only_stored
from attentest.targets.language_models.construction.layer_kinds import (
    kinds_assumed,
    with_usual_kinds,
)
from attentest.targets.language_models.construction.rounded_tables import (
    with_size_of_table,
    with_whole_rows,
)
from attentest.targets.language_models.construction.uses import HEAD_WIDTH
from attentest.targets.language_models.construction.written_fields import (
    with_written,
    with_written_factor,
)
from attentest.targets.models.configurations import Configurations
from attentest.targets.models.size_names import sizes_named
from attentest.targets.signatures import constructor_arguments
from attentest_spec import Sizes

EXPERTS = {own: size for size in OF_EXPERTS for own in SIZES[size] if own != "k"}
"""Names of the numbers of experts, and of those that are chosen."""

ROTARY = words("rotarydim rotarydims rotdim ropedim rotaryndims rotaryembdim nropedims")
"""Names of the number of columns of a head that are turned."""

HALF = "sizes.d_model // sizes.heads // 4 * 2"
"""Half of the columns of a head, an even number."""


def settings_read(
    top: Callable[..., Any],
    own: str,
    fill: Callable[[str, Mapping[str, str]], str | None],
    kept: KeptFields,
    sizes: Sizes,
) -> tuple[str, Sequence[str], Sequence[str]]:
    """Return the expression of the settings `own` of `top`, and the fields that nothing says.

    `fill` says a field by its name, and `kept` what it is where that does not; `sizes` are
    those of probing. Fields of settings in the file may be read when the model is called. The last
    value are the assumptions: a number of experts that may be left out is.
    """
    optional: dict[str, None] = {}

    def without_experts(name: str, known: Mapping[str, str]) -> str | None:
        if squashed(name) not in EXPERTS:
            return fill(name, known)
        optional[name] = None
        return None

    code, missing, off = _settings_read(top, own, without_experts, kept, sizes)
    if any(name in kept.fields for name in optional) or set(optional) & set(missing):
        code, missing, off = _settings_read(top, own, fill, kept, sizes)
        return code, missing, off
    said = [_WITHOUT.format(own, name) for name in optional]
    return code, missing, [*said, *off]


def takes_settings(
    top: Callable[..., Any], own: str, arguments: Mapping[str, inspect.Parameter]
) -> bool:
    """Say whether the argument `own` of `top` gets settings, and no size.

    It is the only one of `arguments` that is needed, or a dictionary that is handed on.
    """
    alone = all(
        name == own or one.default is not one.empty or only_stored(top, name)
        for name, one in arguments.items()
    )
    named = is_configuration(own, top) and not is_plain(arguments[own])
    return named and (alone or is_unpacked(top, own))


_SWITCH = "assumed {0}={1}, a switch that nothing says: --give {0}={2} judges it with that"
_NONE = "assumed {0}=None, which nothing says: --give {0}=VALUE judges it with another one"
_WITHOUT = "assumed that {} has no {}: --give sets a number of them"


def _settings_read(
    top: Callable[..., Any],
    own: str,
    fill: Callable[[str, Mapping[str, str]], str | None],
    kept: KeptFields,
    sizes: Sizes,
) -> tuple[str, Sequence[str], Sequence[str]]:
    """Return the expression of the settings, the fields that nothing says, and assumptions."""

    def filled(name: str, known: Mapping[str, str]) -> str | None:
        said = fill(name, known)
        if said is not None or name not in kept.fields:
            return said
        beyond = "pad" in name.lower() and is_beyond(kept.fields[name], sizes)
        return "None" if beyond else repr(kept.fields[name])

    arguments = {name: one for name, one in constructor_arguments(top).items() if name != own}
    needed = [name for name, one in arguments.items() if one.default is one.empty]
    stored = {name: None for name in needed if only_stored(top, name)}

    def reading(fill: Callable[[str, Mapping[str, str]], str | None]) -> Configurations:
        def value(code: str) -> Any:
            return eval(code, {"sizes": sizes})

        codes = {name: fill(name, {}) for name in needed if name not in stored}
        held = {**stored, **{name: value(code or "None") for name, code in codes.items()}}
        return Configurations(lambda settings: top(**{own: settings, **held}), fill, value)

    made = reading(filled)
    with undisturbed():
        code, missing = made.without_switches(kept.made)
        off = made.switched() if missing else {}
        off |= dict.fromkeys((one for one in missing if may_be_none(top, one)), "None")
        if off:
            made = reading(lambda name, known: off.get(name) or filled(name, known))
            code, missing = made.without_switches(kept.made)
        code, missing, near = with_written(
            top,
            lambda held: reading(
                lambda name, known: {**held, **off}.get(name) or filled(name, known)
            ).without_switches(kept.made),
            *(code, missing),
        )
    known = re.findall(r"\b(\w+)=", code)
    later = [one for one in made_settings(top, own).later(top, known) if one in kept.fields]
    more = "".join(f", {one}={filled(one, {})}" for one in later)
    said = [_assumed(name, value) for name, value in off.items()]
    return code.removesuffix(")") + more + ")", missing, [*said, *near]


def _assumed(name: str, value: str) -> str:
    """Return the assumption on a field that nothing says: a switch, or one that may be None."""
    return _NONE.format(name) if value == "None" else _SWITCH.format(name, value, value != "True")


def layers_off(
    found: Mapping[str, str | None], arguments: Mapping[str, inspect.Parameter]
) -> Sequence[str]:
    """Return the numbers of layers that are 0 by default, where another one is not."""
    layers = [own for own, code in found.items() if code == "sizes.layers"]
    off = [own for own in layers if arguments[own].default == 0]
    return off if len(off) < len(layers) else []


IS_DECODER = "isdecoder"
"""The name of the switch by which models that fill in tokens become decoder-only ones."""
_DECODES = re.compile(r"causallm|lmhead")


def decodes(own: str, parameter: inspect.Parameter, top: Any) -> str:
    """Return the expression of a switch that makes the model `top` decoder-only, as its name says.

    It is "" for every other argument, and where the switch is on by default.
    """
    named = _DECODES.search(squashed(getattr(top, "__name__", "")))
    off = parameter.default is False and squashed(own) == IS_DECODER
    return "True" if named and off else ""


def member_of(parameter: inspect.Parameter, space: Mapping[str, Any]) -> str:
    """Return the first member for a required argument that is annotated as an enumeration.

    It is an expression of a class in `space`, "" for every other argument.
    """
    kind, required = parameter.annotation, parameter.default is inspect.Parameter.empty
    if not (required and inspect.isclass(kind) and issubclass(kind, Enum) and len(kind)):
        return ""
    name = next((name for name, one in space.items() if one is kind), "")
    return name and f"{name}.{next(iter(kind)).name}"


def doubts_of(
    thing: Callable[..., Any], expression: str, space: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return what is assumed of the settings in `expression`, and of members of enumerations."""
    members = {own: member_of(one, space) for own, one in constructor_arguments(thing).items()}
    said = (
        f"assumed {own}={code}, the first of its values: a function that builds it with another "
        f"one is a target too"
        for own, code in members.items()
        if code and f"{own}={code}" in expression
    )
    switched = re.findall(r"\bis_?decoder=True", expression)
    decoding = (f"assumed {one}, as its name says that it predicts next tokens" for one in switched)
    return (*settings_doubts(thing, expression), *said, *decoding, *kinds_assumed(expression))


SHARED_HEADS = "sizes.kv_heads or sizes.heads"
"""The expression of the number of heads of keys."""


REPEATED = f"sizes.heads // ({SHARED_HEADS})"
"""The expression of the number of heads that share one of keys, where both numbers are given."""

REPEATS = words("groupsize nrep nreps numrep kvgroupsize headspergroup numkeyvaluegroups")
"""Names of the number of heads that share one of keys, next to the number of those."""

RATIOS = words("gqaratio gkaratio kvratio kvheadratio groupratio queriesperkv qheadsperkvhead")
"""Names of the number of heads that share one of keys, where nothing else says that of keys."""

HEAD = "sizes.d_model // sizes.heads"
"""The expression of the width of a head."""

DERIVED = frozenset({SHARED_HEADS, REPEATED, HALF, HEAD})
"""Expressions of several sizes: an argument that gets one is none of them."""

SHARING = Sizes(d_model=24, heads=4, kv_heads=2, layers=2)
ONE = SHARING.but(kv_heads=1)
"""Sizes with fewer heads of keys than of queries."""


def expression_of(name: str) -> str:
    """Return the expression of the size `name`; there is one vocabulary, that of the target."""
    if name in ("kv_heads", ""):
        return name and SHARED_HEADS
    if name == HEAD_WIDTH:
        return HEAD
    return f"sizes.{name.replace('source', 'target')}"


def other_values(
    thing: Callable[..., Any],
    failures: Sequence[tuple[str, str]],
    space: Mapping[str, Any],
    doubts: Sequence[str],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield expressions that failed, with other values of some argument, and the doubts of each.

    `doubts` are those of the expressions as they are.
    """
    yield from with_all_heads(thing, failures, space)
    yield from with_last_row_as_pad(failures, doubts)
    yield from with_pad_of_table(failures, space, doubts)
    for one in [code for code, failure in failures[:2] if failure == NO_INNER]:
        yield from with_written_factor(thing, one, tuple(doubts))
    yield from with_own_inner_width(failures)
    yield from with_one_width(thing, failures, space)
    yield from with_whole_rows(failures, space, doubts)
    yield from with_size_of_table(failures, doubts)
    for code in with_usual_kinds(thing, failures):
        yield code, (*doubts_of(thing, code, space), *doubts)
    for one, failure in [each for each in failures[:2] if "=sizes.d_ff" in each[0]]:
        said = f"assumed an inner width of four times the model's: with others, {failure}"
        yield one.replace("=sizes.d_ff", "=4 * sizes.d_model"), (*doubts, said)


def with_all_heads(
    thing: Callable[..., Any], failures: Sequence[tuple[str, str]], space: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield expressions that failed with fewer heads of keys, with as many as of queries.

    With each come the doubts of it.
    """
    for expression, failure in failures[:2]:
        if SHARED_HEADS in expression:
            one = expression.replace(SHARED_HEADS, "sizes.heads")
            said = f"assumed as many heads of keys as of queries: with fewer of them, {failure}"
            yield one, (*doubts_of(thing, one, space), said)


def with_last_row_as_pad(
    failures: Sequence[tuple[str, str]], doubts: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield expressions whose table refuses an id of padding that is no token, with the last row.

    With each come the `doubts`, of which that on the id is about the last row. Tables count
    from their end there, and no token is -1.
    """
    for expression, failure in failures[:2]:
        if f"={NO_PAD}" in expression and "adding_idx" in failure:
            others = tuple(one.replace(f"={NO_PAD},", f"={LAST_ROW},") for one in doubts)
            yield expression.replace(f"={NO_PAD}", f"={LAST_ROW}"), others


def with_pad_of_table(
    failures: Sequence[tuple[str, str]], space: Mapping[str, Any], doubts: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield expressions whose table refuses the default id of padding, with that of the last row.

    It is an argument of a class that they call, by its name in `space`.
    """
    for expression, failure in failures[:2]:
        for name in re.findall(r"(\w+)\(", expression) if "adding_idx" in failure else ():
            made = space.get(name)
            taken = constructor_arguments(made) if inspect.isclass(made) else {}
            for own in [one for one in taken if is_pad(one) and f"{one}=" not in expression]:
                said = _PAD_OF_TABLE.format(own, LAST_ROW, taken[own].default)
                one = expression.replace(f"{name}(", f"{name}({own}={LAST_ROW}, ", 1)
                yield one, (*doubts, said)


_PAD_OF_TABLE = "assumed {0}={1}, the last row: the table refuses {2}, which is its default"


NO_INNER = "it holds no two matrices of the inner width"
"""The failure of a model whose matrices are of another width than it is built with."""


def with_own_inner_width(
    failures: Sequence[tuple[str, str]],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield expressions whose inner width is another one, with four times the model's.

    A network may be given that width and take two thirds of it. With each come the doubts of it.
    """
    for expression, failure in failures[:2]:
        found = re.search(r"(\w+)=sizes\.d_ff\b", expression)
        if failure == NO_INNER and found:
            said = f"assumed {found[1]}=4 times the width: the inner layer is of another width"
            yield expression.replace(found[0], f"{found[1]}=4 * sizes.d_model"), (said,)


def with_one_width(
    thing: Callable[..., Any], failures: Sequence[tuple[str, str]], space: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield expressions that failed with an inner width of its own, as the width of the model.

    Settings may have a width of the table and one of the layers, both of which are the model's.
    With each come the doubts of it.
    """
    for expression, _ in failures[:2]:
        found = re.search(r"(\w*hid\w*)=sizes\.d_ff\b", expression)
        if found:
            one = expression.replace(found[0], f"{found[1]}=sizes.d_model")
            doubt = f"assumed that {found[1]} is the width of the layers, as that of the table"
            yield one, (*doubts_of(thing, one, space), doubt)


def without_unread_heads(
    thing: Callable[..., Any], expression: str, space: Mapping[str, Any]
) -> tuple[str, tuple[str, ...]]:
    """Return `expression` without a number of heads of keys that is a field which nothing reads.

    Settings that models share have fields of some of them: the shapes do not depend on it then. An
    argument of the model itself that changes nothing is left, as one that is forgotten. With it
    comes what is assumed.
    """
    found = re.search(rf", (\w+)={re.escape(SHARED_HEADS)}", expression)
    if found is None or found[1] in constructor_arguments(thing):
        return expression, ()
    without = expression.replace(found[0], "")
    try:
        with undisturbed():
            shapes = [
                [one.shape for one in eval(code, {**space, "sizes": sizes}).parameters()]
                for code, sizes in ((expression, SHARING), (expression, ONE), (without, ONE))
            ]
    except Exception:  # settings that a user wrote may require the field
        return expression, ()
    if any(one != shapes[0] for one in shapes):
        return expression, ()
    said = f"assumed as many heads of keys as of queries: {found[1]} changes no shape"
    return without, (f"{said}, and if it is meant to, this is a mistake",)


def is_beyond(default: Any, sizes: Sizes) -> bool:
    """Say whether a default is the id of a token that a vocabulary of `sizes` does not have."""
    return type(default) is int and default >= sizes.target_vocabulary


NO_PAD = "-100"
"""The id of padding that a model has to be given: no token is one, and a table refuses it."""

LAST_ROW = "-1"
"""The id of padding where a table takes it: that of its last row, and of no token."""


def is_pad(own: str) -> bool:
    """Say whether an argument is the id of padding, by its name."""
    return next(sizes_named(squashed(own), [], ""), "").endswith("_pad")


def is_dense(experts: Any) -> bool:
    """Say whether a default number of experts is that of a model without any."""
    return experts is None or (type(experts) is int and experts < 2)


def is_width(default: Any) -> bool:
    """Say whether a default is that of a width and of no rate: "d_rope" is no dropout."""
    return isinstance(default, int) and default > 1
