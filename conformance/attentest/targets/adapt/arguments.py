"""The inputs that the arguments of a signature carry, by the names that people give."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import permutations
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.computed_values import values_computed
from attentest.targets.adapt.encoders.sequences import one_memory, one_sequence
from attentest.targets.adapt.fillings import is_switch, may_be_none
from attentest.targets.adapt.names import (
    CONTEXT,
    KEY_WIDTH,
    LENGTH,
    MASKS,
    OFF,
    ONE_INPUT,
    PADDING,
    ROLES,
    SIZES,
    SOURCE,
    TARGET,
    turns,
)
from attentest.targets.adapt.objects.mask_arguments import (
    any_mask,
    inputs_by_words,
    mask_of,
    masks_of_sides,
    sequences_by_sides,
)
from attentest.targets.adapt.reading import Attempt, Reading, Unclear
from attentest_spec import COMPONENTS


@dataclass(frozen=True)
class Arguments:
    """The input that each argument carries, and the values of the others.

    `padding` is a second mask beside "mask" that says which keys are real; `joined` are pairs of
    inputs that are one argument, and `repeated` are arguments that get an input which another one
    carries; `derived` gets the width of a key; `fixed` are constants, and
    `computed` are arguments with expressions of the inputs.
    """

    roles: Mapping[str, str]
    padding: str = ""
    joined: Sequence[tuple[str, str]] = ()
    derived: Collection[str] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    repeated: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The role of each argument, in the words of the option that says it."""
        phrases = [f"{role}={own}" for role, own in self.roles.items()]
        phrases += [f"padding={self.padding}"] * bool(self.padding)
        phrases += [f"{own} given as {value!r}" for own, value in self.fixed.items()]
        phrases += [f"{own} given as {code}" for own, code in self.computed.items()]
        phrases += [f"{own} given as {role}" for own, role in self.repeated.items()]
        phrases += [f"{own} given as the width of a key" for own in self.derived]
        phrases += [f"{one} and {other} are one" for one, other in self.joined]
        return "arguments: " + ", ".join(phrases)


def read(name: str, component: str, signature: inspect.Signature, reading: Reading) -> Arguments:
    """Return what the arguments of `name` carry; Unclear where that cannot be inferred."""
    own = _own(signature)
    if sizes := sizes_of_table(component, own):
        return Arguments({}, computed=sizes)
    _check(name, own, reading, COMPONENTS[component].inputs)
    settled = {
        role: argument
        for role, argument in reading.arguments.items()
        if role in COMPONENTS[component].inputs and argument in own
    }
    repeated: dict[str, str] = {}
    fixed = {argument: value for argument, value in reading.given.items() if argument in own}
    free = [
        one
        for one in own
        if one not in settled.values() and one not in fixed and not _is_flag(signature, one)
    ]
    if three := one_sequence(component, signature, [one for one in own if one not in fixed]):
        settled = {"x": three[0], **settled}
        repeated = {one: "x" for one in own if one in three and one not in settled.values()}
        free = [one for one in free if one not in three]
    if both := one_memory(component, signature, [one for one in own if one not in fixed], settled):
        settled |= {"memory": settled.get("memory", both[0])}
        repeated = {one: "memory" for one in both if one != settled["memory"]}
        free = [one for one in free if one not in both]
    once, shared = _shared(settled)
    roles, joined = _roles(component, free, once, shared)
    joined = list(dict.fromkeys([*shared, *joined]))
    left = [one for one in free if one not in roles.values()]
    padding = next((one for one in left if "mask" in roles and squashed(one) in PADDING), "")
    derived = [
        one
        for one in left
        if squashed(one) in KEY_WIDTH and (own[one] or _is_width(component, signature, one))
    ]
    computed = values_computed(component, [one for one in left if own[one]])
    for one in left:
        if own[one] and one not in derived and squashed(one) in OFF:
            fixed[one] = OFF[squashed(one)]
        elif own[one] and is_switch(signature.parameters[one].annotation):
            fixed[one] = False
        elif own[one] and one != padding and may_be_none(signature.parameters[one].annotation):
            fixed[one] = None
    unknown = [
        one
        for one in left
        if own[one] and one != padding and one not in {*derived, *fixed, *computed}
    ]
    missing = [
        role
        for role in COMPONENTS[component].inputs
        if role not in roles and role not in MASKS and role not in dict(joined)
    ]
    if missing or unknown:
        raise _question(name, component, signature, missing, unknown, left, roles)
    return Arguments(roles, padding, joined, derived, fixed, computed, repeated)


def makes_table(component: str, thing: Any) -> bool:
    """Say whether the function `thing` makes a table of positions by its name and arguments."""
    if component != "positional_encoding" or not inspect.isfunction(thing):
        return False
    return bool(sizes_of_table(component, _own(inspect.signature(thing))))


def sizes_of_table(component: str, own: Mapping[str, bool]) -> dict[str, str]:
    """Return the arguments of a function that makes a table of positions (length, width)."""
    needed = [one for one, must in own.items() if must and squashed(one) not in OFF]
    optional = [one for one, must in own.items() if not must and squashed(one) in LENGTH]
    needed += optional if len(needed) == len(optional) == 1 else []
    words = [squashed(one) for one in needed]
    if component != "positional_encoding" or len(words) != 2 or {*words} & {*ROLES["x"]}:
        return {}
    axes = [
        "x.shape[1]" * (one in LENGTH) or "x.shape[2]" * (one in (*SIZES["d_model"], "depth"))
        for one in words
    ]
    devices = [one for one, must in own.items() if must and squashed(one) == "device"]
    made = dict(zip(needed, axes, strict=True)) | dict.fromkeys(devices, "x.device")
    return made if len({*axes, ""}) == 3 else {}


def _own(signature: inspect.Signature) -> dict[str, bool]:
    """Return the arguments that can be named or placed, and whether they must be given."""
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        one.name: one.default is inspect.Parameter.empty
        for one in signature.parameters.values()
        if one.kind not in loose
    }


def _is_flag(signature: inspect.Signature, argument: str) -> bool:
    """Say whether an argument called a mask is a flag by its default: it holds no entries."""
    default = signature.parameters[argument].default
    named = "mask" in squashed(argument) or squashed(argument) == "bias"
    return isinstance(default, bool) and named


def _is_width(component: str, signature: inspect.Signature, argument: str) -> bool:
    """Say whether a width of keys with a default, as in `dk=64`, is that of one design.

    Its callers give the width of their heads: attention by itself is called with its own.
    """
    return component == "attention" and type(signature.parameters[argument].default) is int


def _check(name: str, own: Collection[str], reading: Reading, roles: Collection[str]) -> None:
    """Refuse an argument that is said to carry an input and is not there."""
    for role, argument in reading.arguments.items():
        if role in roles and argument not in own:
            near = get_close_matches(argument, own, n=1)
            raise Unclear(
                f"{name} has no argument {argument!r} that could be the {role}; it has "
                f"{', '.join(own) or 'none'}." + (f" Did you mean {near[0]}?" if near else "")
            )


def _shared(settled: Mapping[str, str]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return every argument with one role, and which inputs the user says are that one tensor."""
    once: dict[str, str] = {}
    shared = []
    for role, own in settled.items():
        if own in once.values():
            shared.append((role, next(one for one, first in once.items() if first == own)))
        else:
            once[role] = own
    return once, shared


def _roles(
    component: str,
    free: Sequence[str],
    settled: Mapping[str, str],
    taken: Sequence[tuple[str, str]],
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    wanted = COMPONENTS[component].inputs
    found = dict(settled)
    given = {role for role, _ in taken}
    for role in wanted:
        own = "" if role in given else _first(free, ROLES[role], found)
        if role not in found and own:
            found[role] = own
    if component in ("attention", "multi_head_attention"):
        found |= inputs_by_words(free, found)
    if component in _TWO_SEQUENCES:
        found |= sequences_by_sides(free, found)
    if component == "multi_head_attention" and not {"key", "value"} & {*found, *given}:
        found, joined = _one_input(free, found)
        if "mask" not in settled and (of_keys := mask_of(found.get("key", ""), free)):
            found["mask"] = of_keys
        return found, joined
    joined = []
    if component == "multi_head_attention" and "value" not in {*found, *given} and "key" in found:
        joined = [("value", "key")]  # what is attended to is one tensor, which is called the key
    tensors = [role for role in wanted if role not in MASKS]
    if len(tensors) == 1 and tensors[0] not in found and free:
        found[tensors[0]] = free[0]  # whatever it is called: there is nothing else it could be
    missing = [role for role in tensors if role not in found]
    if component in _TWO_SEQUENCES and len(missing) == 1 and len(tensors) == 2:
        found |= _left_over(free, missing[0], found)
    if component in _TWO_SEQUENCES and "source_mask" not in found:
        of_memory = mask_of(found.get("memory", ""), free)
        found |= {"source_mask": of_memory} if of_memory not in ("", *found.values()) else {}
    if component in _TWO_SEQUENCES:
        masks_of_sides(free, found)
    any_mask(free, wanted, found)
    return {role: found[role] for role in wanted if role in found}, joined


_TWO_SEQUENCES = ("decoder", "decoder_layer")
"""Components of two sequences: where one of them is known, the other may have any name."""


def _left_over(free: Sequence[str], role: str, found: Mapping[str, str]) -> dict[str, str]:
    """Return the argument of the sequence `role`: the first of two, or the one behind it."""
    other = next(iter(found.values()), "")
    place = 0 if role == "x" else 1
    own = free[place] if len(free) > place else ""
    named = any(squashed(own) in ROLES[one] for one in MASKS) or "mask" in squashed(own)
    beside = other in free[:2] and own != other
    return {role: own} if own and beside and not named and "_id" not in own else {}


def _one_input(
    free: Sequence[str], found: dict[str, str]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Read the signature of self-attention: one input, and perhaps a second one for the keys."""
    target, source = _first(free, TARGET, found), _first(free, SOURCE, found)
    if "query" not in found and target and source:  # the target attends to the source
        found |= {"query": target, "key": source}
        any_mask(free, ("mask",), found)
        return found, [("value", "key")]
    others = [one for one in free if "mask" not in squashed(one)]
    alone = others[0] if len(others) == 1 else ""  # there is nothing else it could be
    if not (query := found.get("query") or _first(free, ONE_INPUT, found) or alone):
        return found, []
    found["query"] = query
    context = _first(free, CONTEXT, found)
    if context:
        found["key"] = context
    any_mask(free, ("mask",), found)
    return found, [("value", "key")] if context else [("key", "query"), ("value", "query")]


def _first(free: Sequence[str], names: Sequence[str], taken: Mapping[str, str]) -> str:
    """Return the free argument with the strongest of `names`."""
    own = {squashed(one): one for one in free if one not in taken.values()}
    return next((own[name] for name in names if name in own), "")


_SEQUENCES = frozenset([*ROLES["x"], *ROLES["memory"], *SOURCE, *TARGET])
"""Names of arguments that carry a sequence: no value can be given for it."""

_ONE_SEQUENCE = {
    "encoder_layer": "decoder_layer",
    "encoder": "decoder",
    "feed_forward": "residual",
    "layer_norm": "residual",
    "rms_norm": "residual",
}
"""Components of one sequence, and the component that what takes two may be."""


_TRAINED = ("weight", "bias", "gamma", "beta")
"""Names of arguments that carry parameters."""


def _second(unknown: Sequence[str]) -> list[str]:
    """Return those of the `unknown` arguments that carry a sequence by their names."""
    return [own for own in unknown if squashed(own) in _SEQUENCES]


def _no_value(component: str, unknown: Sequence[str]) -> str:
    """Return why none of the `unknown` arguments can be given a value, "" where one can."""
    names = {squashed(one): one for one in unknown}
    turning = [own for own in unknown if turns(own)]
    trained = [own for name, own in names.items() if name in _TRAINED]
    second = _second(unknown)
    if turning and (component == "multi_head_attention" or component.endswith("layer")):
        return (
            f"and {' and '.join(turning)} would carry rotary positions, which are not inferred "
            f"where they are given. Name what makes and applies them, which is judged as rotary, "
            f"or give them in a recipe of your own and declare attention_rotary there."
        )
    if trained:
        return (
            f"and {' and '.join(trained)} would carry parameters. Wrap it in a module that holds "
            f"them, and name that."
        )
    if second and component in _ONE_SEQUENCE:
        return (
            f"which has no input for {' and '.join(second)}, a second sequence by its name. "
            f"{_ONE_SEQUENCE[component]} has one; its parts can be named one by one, too."
        )
    return ""


def _one_sequence(component: str, signature: inspect.Signature) -> str:
    """Return what a decoder without a second sequence may be, "" where it may have one."""
    names = [squashed(one) for one, needed in _own(signature).items() if needed]
    if component not in ("decoder", "decoder_layer") or len(names) != 1:
        return ""
    if any(one in ROLES["memory"] for one in map(squashed, signature.parameters)):
        return ""
    tokens = names[0] in ROLES["tokens"] and names[0] not in ROLES["x"]
    return "language_model" if tokens and component == "decoder" else f"en{component[2:]}"


def _question(
    name: str,
    component: str,
    signature: inspect.Signature,
    missing: Sequence[str],
    unknown: Sequence[str],
    left: Sequence[str],
    roles: Mapping[str, str],
) -> Unclear:
    what = (
        f"which argument is the {' and which the '.join(missing)}"
        if missing
        else (f"what to give for {' and '.join(unknown)}")
    )
    call = ", ".join(COMPONENTS[component].inputs)
    taken = f"{name}({', '.join(signature.parameters)}) was taken for {component}({call})"
    other = _one_sequence(component, signature) if missing else ""
    if other:
        return Unclear(
            f"{taken}, which has no input for a memory: it is part of a decoder-only model, and "
            f"{other} has one sequence.",
            attempts=[Attempt(component=other)],
        )
    reason = "" if missing else _no_value(component, unknown)
    if reason:
        likely = _ONE_SEQUENCE.get(component, "")
        return Unclear(
            f"{taken}, {reason}",
            attempts=[Attempt(component=likely)] * (f"{likely} has one" in reason),
        )
    whole = all(signature.parameters[one].annotation in (int, "int") for one in unknown)
    return Unclear(
        f"{taken}, and nothing in it says {what}.",
        f"If it is another component, name it with --as; or write in a file of your own: "
        f"`from attentest_spec.torch import of_function` and "
        f'`backend = of_function(lambda {call}: {name}(..), "{component}")`.',
        attempts=list(_attempts(component, missing, unknown, left, roles, 0 if whole else False)),
        taken=component,
    )


def _attempts(
    component: str,
    missing: Sequence[str],
    unknown: Sequence[str],
    left: Sequence[str],
    found: Mapping[str, str],
    off: int,
) -> Iterator[Attempt]:
    """Yield what arguments may carry that no name explains, and then that they are `off`."""
    if missing:
        free = dict.fromkeys([*unknown, *(own for own in left if "mask" not in squashed(own))])
        for chosen in permutations(free, len(missing)):
            yield Attempt(arguments=dict(zip(missing, chosen, strict=True)))
        return
    if len(unknown) == 1:
        if component == "multi_head_attention" and "query" in found and "key" not in found:
            yield Attempt(arguments={"query": found["query"], "key": unknown[0]})
        masks = [one for one in MASKS if one in COMPONENTS[component].inputs and one not in found]
        yield from (Attempt(arguments={role: unknown[0]}) for role in masks)
    yield from (Attempt(given=dict.fromkeys(unknown, value)) for value in (None, off))
