"""The labels of a decoder-only model that returns a loss: the ids themselves, or those after."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from types import ModuleType

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.reading import Contrary, Unclear
from attentest.targets.comments import words_on
from attentest.targets.language_models.calling import Call
from attentest.targets.language_models.numbers.losses import (
    cuts_own_labels,
    distance_of_labels,
    keeps_own_tokens,
    words_on_another_loss,
)
from attentest.targets.language_models.surrounded.modules import signature_of

_IDS = r"(?:the\s)?(?:input[\s_]?)?(?:ids|tokens|inputs?|idx|x)\b"
_SAME = re.compile(
    rf"\b(?:same|identical)\s(?:ids?\s|tokens?\s)?(?:as|to)\s{_IDS}"
    rf"|\bcopy\sof\s{_IDS}|\b(?:labels|targets)`?\s*=\s*`?{_IDS}"
    r"|\bshift(?:ed|s|ing)?\s(?:by\s(?:one|1)\s)?(?:inside|internally|within|here\b|by\sthe\smodel"
    r"|in\s(?:the\s)?(?:model|forward|call))",
    re.IGNORECASE,
)
"""Words which say that labels are the ids that the model is given."""

_NEXT = re.compile(
    r"\b(?:already|pre|previously)[\s-]shifted\b|\bshifted\s(?:outside|beforehand|by\sthe\scaller)"
    r"|\b(?:labels|targets)\b.{0,20}\b(?:are|is|hold|holds|:|=)\s(?:the\s)?next\s(?:tokens?|ids?)\b",
    re.IGNORECASE,
)
"""Words which say that the label of a token is the one after it."""

_MOVED = ((_NEXT, 1), (_SAME, 0))

_OPEN = re.compile(
    r"\b(?:not|never|no|without|instead|if|unless|whether|either|shape|size)\b|n't\b", re.IGNORECASE
)
"""Words with which a sentence leaves it open, or denies it."""


def doubts_of_loss(name: str, made: type, model: nn.Module, call: Call, labels: str) -> list[str]:
    """Return the assumption on the argument `labels`, for which a `model` returns a loss, if any.

    Raises Unclear for a loss that compares no token with itself or the next one, and Contrary where
    words on the class `made`, called `name`, or the calls of its file, say another label.
    """
    ahead = distance_of_labels(model, call, labels)
    cut = ahead is None and cuts_own_labels(model, call, labels)
    if ahead is None and not cut:
        return [*filter(None, [words_on_another_loss(model, call, labels)])]
    stated = next(_stated(name, made, call, labels), None)
    own = f"The loss that {name} returns for {labels} compares the logits of each token with the"
    without = (
        f"--give {labels}=None (in Python: given={{{labels!r}: None}}) judges the model without "
        f"its loss"
    )
    if ahead is None:
        if stated and stated[1] == 1:
            return []
        raise Unclear(
            f"{own} label of the token itself, and leaves out the last token, as a loss does which "
            f"moves its labels by one. If they are moved before they are given, {without}; "
            f"otherwise it is a mistake."
        )
    if ahead not in (0, 1):
        way = f"{abs(ahead)} {'after' if ahead > 0 else 'before'}"
        raise Unclear(
            f"{own} label {way} it: those of the token itself, or of the next one, are usual. If "
            f"its {labels} are moved before they are given, {without}; otherwise it is a mistake."
        )
    label = "label of the next one" if ahead else "label of the token itself"
    if stated:
        source, moved = stated
        if moved != ahead:
            return []
        effect = (
            "each token predicts the one two after it" if ahead else "each token predicts itself"
        )
        raise Contrary(
            f"{own} {label}, and {source}: {effect}. That is a mistake, unless other {labels} are "
            f"meant: {without}."
        )
    return [
        f"assumed that {labels} are the ids themselves, which its loss moves by one: a mistake if "
        f"they are moved before they are given"
        if ahead
        else f"assumed that {labels} are moved by one before they are given, as its loss does not "
        f"move them: a mistake if they are the ids themselves"
    ] * (ahead == ("label" not in squashed(labels)))


def demand_loss_of_next(name: str, model: nn.Module, call: Call) -> None:
    """Raise Unclear for a loss without labels in which each token predicts itself."""
    for own, one in signature_of(model).parameters.items():
        if isinstance(one.default, bool) and "loss" in own and keeps_own_tokens(model, call, own):
            raise Unclear(
                f"The loss that {name} returns with {own}=True compares the logits of each token "
                f"with that token: each predicts itself, and not the next one, which is a mistake. "
                f"--give {own}=False (in Python: given={{{own!r}: False}}) judges the model "
                f"without its loss."
            )


def _stated(name: str, made: type, call: Call, labels: str) -> Iterator[tuple[str, int]]:
    """Yield what says which labels are given, and by how many tokens they are moved before."""
    words = words_on(getattr(made, "forward", made), made)
    for sentence in re.split(r"[.;]\s|\n\s*\n|\n\s*(?=\w+\s*[:(])", words):
        own = " ".join(sentence.split())
        if not re.search(rf"\b(?:{re.escape(labels)}|labels|targets)\b", own) or _OPEN.search(own):
            continue
        found = [(one[0], moved) for pattern, moved in _MOVED if (one := pattern.search(own))]
        if len(found) == 1:  # a sentence that says both leaves it open
            yield f'its documentation says "{found[0][0]}"', found[0][1]
    home = sys.modules.get(made.__module__)
    for line, moved in _given(home, name, call.tokens, labels) if home else ():
        given = "the ids that come next" if moved else "the ids themselves"
        yield f"line {line} of its file gives it {given}", moved


def _given(home: ModuleType, name: str, tokens: str, labels: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of `home` that give ids and labels, and by how many tokens they are moved."""
    try:
        tree = ast.parse(inspect.getsource(home))
    except (OSError, TypeError, SyntaxError):
        return
    made = _assigned(tree)
    for one in ast.walk(tree):
        if not isinstance(one, ast.Call) or name not in made.get(ast.unparse(one.func), name):
            continue
        given = {each.arg: each.value for each in one.keywords}
        ids = given.get(tokens) or (one.args[0] if one.args else None)
        if labels not in given or ids is None or isinstance(ids, ast.Constant):
            continue
        if _is_drawn(tree, ids, one.lineno):
            continue
        if ast.dump(ids) == ast.dump(given[labels]):
            yield one.lineno, 0
        elif _is_cut(ids, "[:, :-1]") and _is_cut(given[labels], "[:, 1:]"):
            yield one.lineno, 1


def _is_drawn(tree: ast.AST, ids: ast.expr, line: int) -> bool:
    """Say whether `ids` are random numbers at a `line`: such a call shows shapes, no training."""
    own = ast.unparse(ids)
    values = [
        (one.lineno, ast.unparse(one.value))
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign) and one.lineno < line
        if own in map(ast.unparse, one.targets)
    ]
    return re.search(r"\brandint\(", max(values, default=(0, own))[1]) is not None


def _assigned(tree: ast.AST) -> dict[str, str]:
    """Return the code of what each name in `tree` is assigned, all of it for several."""
    found: dict[str, str] = {}
    for one in ast.walk(tree):
        if not isinstance(one, ast.Assign):
            continue
        for target in one.targets:
            own = ast.unparse(target)
            found[own] = f"{found.get(own, '')} {ast.unparse(one.value)}"
    return found


def _is_cut(node: ast.AST, cut: str) -> bool:
    """Say whether an expression ends with a `cut` such as "[:, 1:]"."""
    return ast.unparse(node).replace("..., ", ":, ").endswith(cut)
