"""The judgement on the embedding and positions of a class whose layers are what is judged."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from attentest.targets.adapt.assumptions.choices import assumed
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.entering import Mismatch, NotRead, OtherPositions
from attentest.targets.adapt.encoders.inputs.makers import class_of
from attentest.targets.adapt.encoders.inputs.positions import JUDGED, is_added
from attentest.targets.adapt.encoders.leaving import options_of_output
from attentest.targets.adapt.encoders.pooling import PADDED
from attentest.targets.adapt.encoders.stack import KEEP
from attentest.targets.adapt.masks import is_length
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.unjudged import names_padding
from attentest_spec import CHOICES
from attentest_spec.choices import Value

_UNREAD = "embeddings and positions of {} are not judged: what its first layer gets cannot be read"
_QUESTION = (
    "{}{} the numbers of {}, and {}{}: that is a mistake, or a design that this spec does not "
    "have. --anyway judges its layers alone."
)
_POSITIONS = f"what the first layer of {{}} gets is {{}}: its positions are {JUDGED}"
_UNHIDDEN = (
    "assumed that {} hides no padding on purpose: its code names some, and no mask of it reaches "
    "its layers"
)
_PADDED = "assumed that the pad id of {} is always {}, as measured: its code has it as a number"
_COUNTED = (
    "assumed that the layers of {} are meant for any number of rows: they hold theirs, here {}, "
    "and are judged with that of their input in its place"
)
_FILLED = (
    "assumed that {} is meant for sequences of its greatest length alone, as it takes no others: "
    "shorter ones are filled with padding at their ends, which its mask hides"
)
UNSEEN = "before its layers get it"
_UNSEEN = f"not judged: what {{}} makes of {{}} {UNSEEN}"
_UNGIVEN = "not judged: what {} makes of {}, which its layers are called without"
_OF_FEATURES = "not judged: what {} does outside of its layers and their norm"
_OTHER = (
    "{} embeds its tokens itself, and what its first layer gets is computed with {}={}, where {} "
    "is {}. --choice {}={} declares that."
)

_DEMANDED = {("positional_encoding", "doubled-exponent")}
"""Options that have to be declared: code that has them by mistake is as common as by intent."""


def entering_of(code: Code, reading: Reading, *, fits: bool) -> tuple[list[str], list[str]]:
    """Return what is said and what is assumed of the input of the first layer of `code`.

    `fits` says that its layers conform. Raises Unclear where the numbers of the input are those of
    no option, or of another one than is declared.
    """
    if code.entering is None:
        return [], []
    said, unsure = _compared(code, reading, fits=fits)
    options = {} if code.inner is None else code.inner.stack
    if not _embeds(code):
        is_mapped = bool(options.get("features") or options.get("given"))
        said = [_OF_FEATURES.format(code.name)] * is_mapped
        return [], [*said, *unsure, *_of_rows(code), *_of_masks_left(code)]
    return said, [*_of_masks(code), *_of_rows(code), *unsure, *_of_output(code, reading)]


def _embeds(code: Code) -> bool:
    """Say whether the input of the layers of `code` is compared with the reference."""
    return getattr(code.entering, "func", None) is not options_of_output


def _of_rows(code: Code) -> Iterator[str]:
    """Yield what is assumed of a pad id, and of layers that hold or get one number of rows."""
    stack = code.inner.stack if code.inner is not None else {}
    if pad := stack.get("pad"):
        yield _PADDED.format(code.name, pad)
    if number := stack.get("rows"):
        yield _COUNTED.format(code.name, number)
    if stack.get("filled"):
        yield _FILLED.format(code.name)


def _of_output(code: Code, reading: Reading) -> Iterator[str]:
    """Yield what of the output of a class is not judged; a strict reading asks about padding."""
    sentence = code.leaving() if code.leaving is not None else ""
    if reading.strict and PADDED in sentence:
        raise Unclear(sentence)
    if sentence:
        yield sentence


def _class(code: Code) -> Any:
    """Return the class of `code`, or that which its function makes."""
    return class_of(code.construction) if code.construction is not None else code.thing


def _called(code: Code) -> Mapping[str, inspect.Parameter]:
    """Return the arguments of a call of the class of `code`."""
    return inspect.signature(_class(code).forward).parameters


def _of_masks_left(code: Code) -> Iterator[str]:
    """Yield that masks of the class of `code` which its stack does not take are not judged."""
    own = _called(code)
    masks = [one for one in own if "mask" in squashed(one) and one not in code.signature.parameters]
    if masks:
        yield _UNGIVEN.format(code.name, " and ".join(masks))


def _of_masks(code: Code) -> Iterator[str]:
    """Yield what is assumed of the masks of an encoder that embeds its tokens."""
    if code.inner is None or code.component != "encoder":
        return
    alone = not code.inner.stack
    own = _called(code) if alone else code.signature.parameters
    masks = [one for one in own if "mask" in squashed(one) or is_length(one)]
    if alone and (masks or code.inner.masked):
        yield _UNSEEN.format(code.name, " and ".join(masks) or "padding")
    elif not masks and KEEP not in own and names_padding(_class(code)):
        yield _UNHIDDEN.format(code.name)


def _compared(code: Code, reading: Reading, *, fits: bool) -> tuple[list[str], list[str]]:
    """Return what is said and assumed of the input, compared with the reference."""
    assert code.entering is not None
    try:
        found = code.entering()
    except NotRead as reason:
        return [], [f"{_UNREAD.format(code.name)}: {reason}"]
    except Mismatch as mismatch:
        judged = isinstance(mismatch, OtherPositions) and code.component == "encoder"
        judged = judged and fits and not (reading.anyway or reading.strict)
        if judged and isinstance(mismatch, OtherPositions) and is_added(mismatch):
            return [], [_POSITIONS.format(code.name, mismatch)]
        if fits and not reading.anyway:
            has = " embeds its tokens itself. Its layers have"
            has = has if _embeds(code) else " has layers with"
            parts = code.name, has, code.component, mismatch.subject, mismatch
            raise Unclear(_QUESTION.format(*parts)) from mismatch
        return [], [f"not judged: of {code.name}, {mismatch.subject}{mismatch}"]
    if not reading.anyway:
        _demand_declared(code, found, reading, fits=fits)
    if not _embeds(code):
        return [], []
    words = ", ".join(f"{name}={value}" for name, value in found.items())
    sentence = f"the input of its first layer is that of the reference with {words}"
    return [sentence], list(assumed(found, reading))


def _demand_declared(
    code: Code, found: Mapping[str, Value], reading: Reading, *, fits: bool
) -> None:
    for name, value in found.items():
        demanded = reading.strict or (fits and (name, value) in _DEMANDED)
        declared = reading.choices.get(name, CHOICES[name].paper if demanded else value)
        if declared != value:
            source = "declared" if name in reading.choices else "that of Vaswani et al. 2017"
            raise Unclear(_OTHER.format(code.name, name, value, declared, source, name, value))
