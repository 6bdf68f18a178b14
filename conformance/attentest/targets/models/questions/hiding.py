"""Questions about what a whole model hides: nothing, no padding, or ids that no vocabulary has."""

import ast
import inspect
import textwrap
from collections.abc import Iterator

import torch
from torch import nn

from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.ungiven import ungiven
from attentest.targets.models.calling import Call
from attentest.targets.models.probing import Probe, shown, takes_pads_for_tokens
from attentest.targets.models.surrounded import signature_of
from attentest.targets.unjudged import names_masks, names_padding


def ungiven_of(model: nn.Module, call: Call) -> Iterator[str]:
    """Yield the optional arguments of the model that `call` never gives."""
    read = call.every_argument
    given = {*read.tokens.values(), *read.fixed, *read.required, *call.conventions.masks}
    given |= {read.labels} if call.conventions.labelled else set()
    if call.encoding is None:
        yield from ungiven(signature_of(model), given)
        return
    for one in ("encode", "decode"):
        yield from ungiven(inspect.signature(getattr(model, one)), {*given, "memory"})


def demand_masks(probe: Probe, call: Call, name: str) -> None:
    """Raise Unclear where a model hides nothing at all, and no name in its code is of a mask."""
    classes = {type(one) for one in probe.model.modules()}
    own = [one for one in classes if not one.__module__.startswith("torch.")]
    later, _, source, _, target = shown(probe, call.compiled())
    if not (later or source or target or any(map(names_masks, own))):
        raise Unclear(
            f"{name} takes no mask and hides nothing: each step of the target sees the later ones, "
            f"and padding is seen as any token is. A model that is trained to translate hides "
            f"both, so that either its masks are forgotten, or it is meant for something else. "
            f"--anyway (in Python: anyway=True) judges it as it is; its layers can be judged by "
            f"their names."
        )


def demand_values(probe: Probe, call: Call, name: str) -> None:
    """Raise Unclear where padding is seen, and arguments that may hide it are not given."""
    _demand_small_ids(probe, call, name)
    held = list(ungiven_of(probe.model, call))
    sides = ("source", "target") if held else ()
    if held and all(takes_pads_for_tokens(probe, call.compiled(), one) for one in sides):
        raise Unclear(
            f"{name} sees padding as it was called, and gives no value to {' and '.join(held)}, "
            f"which may hide it: say what carries a mask with --argument source_mask=NAME or "
            f"target_mask=NAME, and leave out what carries none with --give {held[0]}=None."
        )


def demand_padding(probe: Probe, call: Call, name: str) -> None:
    """Raise Unclear where a model hides later steps alone, and its code names no padding."""
    classes = {type(one) for one in probe.model.modules()}
    own = [one for one in classes if not one.__module__.startswith("torch.")]
    later, _, source, _, target = shown(probe, call.compiled())
    if not later or source or target or any(map(names_padding, own)):
        return
    if all(takes_pads_for_tokens(probe, call.compiled(), one) for one in ("source", "target")):
        raise Unclear(
            f"{name} hides later steps and no padding: it takes neither masks nor an id of "
            f"padding, and its code names none. It may be meant for sequences of one length, or "
            f"its masks are forgotten. --anyway (in Python: anyway=True) judges it with padding; "
            f"its layers can be judged by their names."
        )


_SHIFTED = (
    "{0} shifts its target itself: a token is put in front of it, and its last one is dropped, as "
    "no output depends on the token of its own step. The target of this spec is shifted by the "
    "caller. Move the shift out of the call, as into a method that the training code calls first, "
    "and ask again; --anyway (in Python: anyway=True) judges it as it is."
)


def demand_own_tokens(probe: Probe, call: Call, name: str) -> None:
    """Raise Unclear where no output depends on the target's token of its step, and all on others.

    A residual connection carries each token to the output of its step, whatever masks hide.
    """
    found = call.compiled()
    source, target = probe.tokens
    before = probe.output(found, source, target)
    if before is None:
        return
    for step in range(target.shape[1]):
        moved = target.clone()
        moved[:, step] = target[:, step].flip(0)
        after = probe.output(found, source, moved)
        rest = slice(step + 1, None)
        if after is None or not torch.equal(after[:, : step + 1], before[:, : step + 1]):
            return
        if step + 1 < target.shape[1] and torch.equal(after[:, rest], before[:, rest]):
            return
    raise Unclear(_SHIFTED.format(name))


_WRITTEN = (
    "{0} hides padding by the id {1}, which is written in its code, and padding is judged in small "
    "vocabularies, which do not have that word. Make it an argument or a setting, as "
    "pad_id={1}, and ask again; its layers can be judged by their names."
)


def _demand_small_ids(probe: Probe, call: Call, name: str) -> None:
    """Raise Unclear where padding is seen, and a number that code compares tokens with is no id."""
    rows = max(probe.sizes.source_vocabulary, probe.sizes.target_vocabulary)
    large = [one for one in _compared(probe.model) if one >= rows]
    if large and all(takes_pads_for_tokens(probe, call.compiled(), one) for one in _SIDES):
        raise Unclear(_WRITTEN.format(name, large[0]))


_SIDES = ("source", "target")


def _compared(model: nn.Module) -> Iterator[int]:
    """Yield the numbers that methods in the code of `model` compare by == or !=.

    A number may have a name of its own in the method, as in `pad = 50259`.
    """
    for one in dict.fromkeys(type(part) for part in model.modules()):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
        except (OSError, SyntaxError, TypeError):
            continue
        nodes = list(ast.walk(tree))
        named = {
            target.id: node.value
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in (one for one in nodes if isinstance(one, ast.Compare)):
            if isinstance(node.ops[0], ast.Eq | ast.NotEq):
                right = node.comparators[0]
                value = named.get(right.id, right) if isinstance(right, ast.Name) else right
                if isinstance(value, ast.Constant) and type(value.value) is int:
                    yield value.value


_FEW = -50.0
"""A fill above this leaves a weight to what is masked, where scores are those of trained code."""

_FILLED = (
    "{} fills its masked scores with {}, and scores of that size are usual: what is masked keeps a "
    "weight. That is a mistake, unless it is meant: --choice mask_fill={} (in Python: choices="
    "{{'mask_fill': {}}}) judges it as it is."
)


def demand_hiding_fill(name: str, fill: object, reading: Reading) -> None:
    """Raise Unclear where the measured `fill` of masked scores is a number that hides little."""
    if isinstance(fill, float | int) and fill > _FEW and "mask_fill" not in reading.choices:
        raise Unclear(_FILLED.format(name, *[f"{fill:g}"] * 3))
