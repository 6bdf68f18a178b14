"""The arguments of the call of a whole model: tokens, masks and constants, by their names."""

import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import OFF, ROLES, words
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.argument_names import LABELS

_MEMORY = ("memory", "mem", "cross", "encdec", "decenc", "encout")
_TARGET = (
    *("tgt", "trg", "target", "dec", "out", "lookahead", "causal", "nopeak", "subsequent"),
    "future",
)
_SOURCE = ("src", "source", "enc", "inp")
_PADS = re.compile(
    r"(src|source|tgt|trg|target|enc|dec|encoder|decoder|inp|input|out|output|x|y)(pad(s|dings?)?|keep|valid)$"
)
_PADDING = re.compile(r"[a-z]+paddings?$")
_OF_TOKENS = re.compile(r"(attention|attn|key)?(pad|padding)?masks?$|(pad|padding|valid)s?$")
"""The end of the name of a mask, after the name of its tokens, as in `document_padding`."""
_PLAIN = re.compile(r"^(.{2,})(batch|ids|tokens|seq|sequence|inputs?)$")
"""The name of tokens, and a word that says nothing of their side, as in `de_batch`."""
_LENGTHS = re.compile(r"(lens|lengths|(?!max|min|seq|beam|gen)[a-z]+(len|lens|length|lengths))$")
_PAD_ID = re.compile(r"(pad|padding|[a-z]+pad)(id|ids|idx|index|token|tokenid|value)$")
"""The names of an id of padding that a call takes, as `src_pad_idx`."""
_SIDES = r"src|source|enc|encoder|tgt|trg|target|dec|decoder"
_POSITIONS = re.compile(
    rf"(?P<side>{_SIDES})(pos|position|positions|positionids|posids|posidx)$"
    rf"|(pos|position|positions|positionids)(?P<last>{_SIDES})$"
)
"""The names of the positions of the tokens of a side, as `src_pos`."""
_OF_TARGETS = ("tgt", "trg", "target", "dec", "decoder")
FEATURES = frozenset(
    words(
        "features feats inputfeatures inputvalues speech mel mels melspec spectrogram spectrograms "
        "spec audio waveform waveforms wav fbank fbanks frames signal signals pixelvalues image "
        "images pixels video videos"
    )
)
"""The names of inputs that are sounds or images, and no token ids."""
LENGTH = "length"
"""The last word of the role of an argument that says how long the sequences of a side are."""


class PadId:
    """The id of padding of one side, which the code of a call takes from its model."""

    def __init__(self, side: int) -> None:
        self.side = side

    def __repr__(self) -> str:
        return f"model.pads[{self.side}]"


class Positions:
    """The positions of the tokens of one side, counted from `start`, and 0 for padding."""

    def __init__(self, side: int, start: int) -> None:
        self.side, self.start = side, start

    def __repr__(self) -> str:
        own, start = ("source", "target")[self.side], self.start
        return (
            f"torch.arange({start}, {start} + {own}.shape[1], device={own}.device) "
            f"* ({own} != model.pads[{self.side}])"
        )


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call.

    `tokens` maps "source" and "target" (and "memory", for a method) to arguments, `masks` each
    mask argument to its role (see :mod:`forms`), and `fixed` arguments to constants. `packed` is
    the one argument that holds all inputs, "" where each has its own, and `holder` is the kind of
    object that it is: a tuple, whose places are the names, a dictionary, or one with attributes.
    `labels` is the optional argument of the tokens of a loss, "" for none. Those `with_lengths` get
    the tokens and how many there are in each row, as a pair.
    """

    tokens: Mapping[str, str]
    masks: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    required: Collection[str] = ()
    positional: Collection[str] = ()
    packed: str = ""
    holder: str = ""
    labels: str = ""
    with_lengths: Collection[str] = ()

    @property
    def takes_pads(self) -> bool:
        """Whether it is given ids of padding."""
        return any(isinstance(one, PadId) for one in self.fixed.values())

    @property
    def takes_one_pad(self) -> bool:
        """Whether it is given one id of padding, which is that of both sides."""
        return len({one.side for one in self.fixed.values() if isinstance(one, PadId)}) == 1

    @property
    def takes_positions(self) -> bool:
        """Whether it is given the positions of tokens."""
        return any(isinstance(one, Positions) for one in self.fixed.values())

    @property
    def words(self) -> str:
        """The argument for each role, in one phrase."""
        pairs = dict.fromkeys(self.with_lengths, " and its lengths")
        phrases = [f"{role}{pairs.get(own, '')}={own}" for role, own in self.tokens.items()]
        phrases += [
            f"{role}{'' if role.endswith(LENGTH) else ' mask'}={own}"
            for own, role in self.masks.items()
        ]
        sides = ("source", "target")
        phrases += [
            f"{own} given as the id of padding of the {sides[value.side]}"
            if isinstance(value, PadId)
            else f"{own} given as the positions of the {sides[value.side]}"
            if isinstance(value, Positions)
            else f"{own} given as {value!r}"
            for own, value in self.fixed.items()
        ]
        return "arguments: " + ", ".join(phrases)


def read(
    name: str, signature: inspect.Signature, wanted: Collection[str], reading: Reading
) -> Arguments:
    """Return the roles of the arguments of `name`; Unclear where an input has none.

    `wanted` are "source" and "target" for a call, and what a method takes in their place.
    """
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = {one.name: one for one in signature.parameters.values() if one.kind not in loose}
    fixed = {one: value for one, value in reading.given.items() if one in own}
    fixed |= {one: _pad_id(one) for one in own if one not in fixed and _is_pad_id(one, reading)}
    fixed |= {one: found for one in own if one not in fixed and (found := _positions(one, reading))}
    tokens = tokens_of(own, wanted, reading, fixed)
    rest = [one for one in own if one not in tokens.values() and one not in fixed]
    said = [one for role, one in reading.arguments.items() if role.endswith("mask")]
    masks = _masks([one for one in rest if _is_mask(one) or one in said], tokens, reading)
    required = [one for one in own if own[one].default is inspect.Parameter.empty]
    unknown = []
    for one in rest:
        if one in masks or one not in required:
            continue
        if squashed(one) in OFF:
            fixed[one] = OFF[squashed(one)]
        else:
            unknown.append(one)
    missing = [role for role in wanted if role not in tokens]
    if missing or unknown:
        raise Unclear(_question(name, signature, missing, unknown))
    placed = [
        one.name
        for one in signature.parameters.values()
        if one.kind is inspect.Parameter.POSITIONAL_ONLY
    ]
    rest = [one for one in rest if one not in (*masks, *fixed, *reading.arguments.values())]
    labels = next((one for one in rest if squashed(one) in LABELS), "")
    return Arguments(tokens, masks, fixed, required, placed, labels=labels)


def _is_pad_id(own: str, reading: Reading) -> bool:
    """Say whether the name of an argument is that of an id of padding, and nothing else is said."""
    return bool(_PAD_ID.match(squashed(own))) and own not in reading.arguments.values()


def _positions(own: str, reading: Reading) -> Positions | None:
    """Return the positions of a side that an argument is by its name, None for no such one.

    They are counted from 1 here: code that takes them has a row for padding before the others.
    """
    found = _POSITIONS.match(squashed(own))
    if not found or reading.strict or own in reading.arguments.values():
        return None
    return Positions(int((found["side"] or found["last"]) in _OF_TARGETS), 1)


def _pad_id(own: str) -> PadId:
    return PadId(any(mark in squashed(own) for mark in _TARGET))


def tokens_of(
    own: Mapping[str, inspect.Parameter],
    wanted: Collection[str],
    reading: Reading,
    fixed: Collection[str],
) -> dict[str, str]:
    """Return the arguments of the `wanted` tokens, by their names and then by their order."""
    found = {role: reading.arguments[role] for role in wanted if role in reading.arguments}
    free = [one for one in own if one not in fixed and not _is_mask(one)]
    free = [one for one in free if not isinstance(own[one].default, bool)]  # no switches
    for role in wanted:
        names = [squashed(one) for one in free]
        known = [one for one in ROLES[role] if one in names]
        if role not in found and known:
            one = free[names.index(known[0])]
            if one not in found.values():
                found[role] = one
    left = [one for one in free if one not in found.values()]
    needed = [one for one in left if own[one].default is inspect.Parameter.empty]
    labels = [role for role, one in found.items() if _may_be_labels(own[one], reading)]
    if labels and len(needed) > sum(role not in found for role in wanted):
        left = [one for one in left if one != found[labels[0]]]
        del found[labels[0]]  # it is of a loss, as in (x, dec_x, target=None)
    for role in wanted:  # what stays takes the order of the call
        if role not in found and left:
            found[role] = left.pop(0)
    return {role: found[role] for role in wanted if role in found}


def _may_be_labels(parameter: inspect.Parameter, reading: Reading) -> bool:
    """Say whether an argument may be left out and has a name of labels, and no other role."""
    is_given = parameter.name in reading.arguments.values()
    return parameter.default is None and squashed(parameter.name) in LABELS and not is_given


def sides_of(signature: inspect.Signature) -> tuple[str, ...]:
    """Return the arguments that are source and target: masks may be between them."""
    found = tokens_of(signature.parameters, ("source", "target"), Reading(), ())
    return tuple(found.values())


def _is_mask(own: str) -> bool:
    words = squashed(own)
    known = (_PADS, _PADDING, _LENGTHS)
    return "mask" in words or any(one.match(words) for one in known)


def _masks(named: Collection[str], tokens: Mapping[str, str], reading: Reading) -> dict[str, str]:
    """Return the role of each mask argument.

    Beside a mask of padding, the mask of the same side is left to the order of positions.
    """
    found = {own: _role(own, tokens) for own in named}
    sides = {role.partition(" ")[0] for role in found.values() if role.endswith("padding")}
    for own, role in list(found.items()):
        if role in sides and role == "target":
            found[own] = "causal"
        elif role in sides or (role == "memory" and "memory padding" in found.values()):
            found[own] = "open"
    for role, own in reading.arguments.items():
        if own in named:
            found[own] = role.removesuffix("_mask")
    return found


def _role(own: str, tokens: Mapping[str, str]) -> str:
    words = squashed(own)
    side = _named_after(words, tokens) or next(
        (
            side
            for side, marks in (("memory", _MEMORY), ("target", _TARGET), ("source", _SOURCE))
            if any(mark in words for mark in marks)
        ),
        "target" if re.match(r"(d|t|y)_", own) else "source",
    )
    if _LENGTHS.match(words):
        is_target = side == "target" or words.startswith(("y", "o", "t", "d"))
        return f"{'target' if is_target else 'source'} {LENGTH}"
    is_padding = "keypadding" in words or words.endswith("paddingmask")
    is_padding = is_padding or bool(_PADS.match(words) or _PADDING.match(words))
    return f"{side} padding" if is_padding else side


def _named_after(words: str, tokens: Mapping[str, str]) -> str:
    """Return the side whose tokens a mask is named after, "" for none."""
    sides = {squashed(own): role for role, own in tokens.items() if role != "memory"}
    sides |= {_PLAIN.sub(r"\1", own): role for own, role in sides.items()}
    return next(
        (
            role
            for own, role in sides.items()
            if words.startswith(own) and _OF_TOKENS.match(words.removeprefix(own))
        ),
        "",
    )


def _question(
    name: str,
    signature: inspect.Signature,
    missing: Collection[str],
    unknown: Collection[str],
) -> str:
    if len(missing) == 1 and not unknown and len(signature.parameters) == 1:
        (own,) = signature.parameters
        return (
            f"{name}({own}) was taken for a whole model, and its one argument holds both source "
            f"and target, which nothing says how to make. Write what makes it in a class of your "
            f"own, and judge that: `class Judged({name}): def forward(self, src, tgt): return "
            f"super().forward(..)`, with {own} made of token ids src (B, S) and tgt (B, T)."
        )
    what = (
        f"which argument is the {' and which the '.join(missing)}"
        if missing
        else f"what to give for {' and '.join(unknown)}"
    )
    taken = (
        f"{name}({', '.join(signature.parameters)}) was taken for a whole model (source and target "
        f"tokens in), and nothing in it says {what}."
    )
    if not missing:
        words = " ".join(f"--give {own}=VALUE" for own in unknown)
        return (
            f"{taken} What is a setting is fixed by {words} (in Python: given={{NAME: VALUE}}). "
            f"With another input it is another kind of model, whose parts can be named one by one."
        )
    words = " ".join(f"--argument {role}=NAME" for role in missing)
    return f"{taken} Add {words} (in Python: arguments={{ROLE: NAME}} and given={{NAME: VALUE}})."
