"""Arguments of an encoder whose names say nothing: what each is, as calls of it show."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.computed_values import OTHER_IDS, other_ids
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders.inputs.arguments import hides, may_hide, required
from attentest.targets.adapt.encoders.inputs.batches import with_items
from attentest.targets.adapt.encoders.stack import rectangular
from attentest.targets.adapt.masks import is_length
from attentest.targets.adapt.names import ROLES
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading

_BATCH, _LENGTH, _HIDDEN = 3, 7, 3
_MOST = 3
"""The most arguments that calls are tried with."""
_NEAR = 1e-6
_SHOWN = re.compile(r"att.*|valid.*|keep.*|visible.*")
_BEHIND = re.compile(r"y|ys|.*(label|target|tag|gold|answer|index|idx|indices|places?).*")
_KINDS = {
    "mask": ("mask", "{} is a mask of padding: a token that it hides has no effect on others"),
    "segments": ("segment_ids", "{} numbers segments: it is an index, and all tokens get a 0"),
    "positions": ("position_ids", "{} numbers the positions: it is an index of their table"),
    "behind": ("masked_ids", "{} is used behind the layers alone: it gets zeros"),
}
"""The name of an argument of each kind, and the assumption about it."""


def with_inputs(built: Construction, reading: Reading) -> Construction:
    """Return `built` with a call by the items of its one argument, and by what calls show."""
    by_items = with_items(built)
    if reading.strict or reading.component == "decoder":
        return by_items
    return _with_names(by_items)


def _with_names(built: Construction) -> Construction:
    """Return `built` with a call in which arguments have the names of what calls show them to be.

    Itself where names say what all of them are, or where no call shows it.
    """
    try:
        with undisturbed(), rectangular():
            module = built(DISTINCT).double().eval()
            found = _kinds(module)
            labels = [] if found or built.batch else _labels_needed(module)
    except Exception:  # code that a user wrote may raise anything
        return built
    if not (found or labels):
        return built
    own = inspect.signature(module.forward).parameters
    names = {one: _name(one, kind) for one, kind in found.items()}
    names |= dict(zip(labels, _FOR_LABELS, strict=False))
    said = "; ".join(f"assumed that {_KINDS[kind][1].format(one)}" for one, kind in found.items())
    said = said or _LABELLED.format(" and ".join(labels))
    remark = "; ".join(filter(None, (built.remark, said)))
    if built.batch:
        argument, kind, items = built.batch
        items = tuple((names.get(name, name), key, needed) for name, key, needed in items)
        return replace(built, batch=(argument, kind, items), remark=remark)
    plain = tuple(
        (names.get(one, one), one, parameter.default is parameter.empty or one in labels)
        for one, parameter in own.items()
    )
    return replace(built, batch=("", "names", plain), remark=remark)


_FOR_LABELS = "masked_ids", "masked_pos"
_LABELLED = "assumed that {} is used behind the layers alone: it gets zeros, as a call needs it"


def _labels_needed(module: nn.Module) -> list[str]:
    """Return the labels, None by default, without which a call with ids fails behind the layers."""
    own = inspect.signature(module.forward).parameters
    labels = [one for one, held in own.items() if held.default is None and _is_label(one)]
    if not 0 < len(labels) <= len(_FOR_LABELS) or len(required(module)) != 1:
        return []
    trial = _Trial(module, required(module)[0], {})
    ids = trial._ids(0)

    def answers(given: Sequence[str]) -> bool:
        try:
            module(**{trial.tokens: ids}, **dict.fromkeys(given, torch.zeros_like(ids)))
        except Exception:  # code that a user wrote may raise anything
            return False
        return True

    tried: list[list[str]] = [[], *([one] for one in labels), labels]
    return next(filter(answers, tried), [])


def _is_label(own: str) -> bool:
    return _BEHIND.fullmatch(squashed(own)) is not None


def _name(own: str, kind: str) -> str:
    """Return the name of an argument of a kind: 1 in `attention` means what tokenizers mean."""
    is_shown = kind == "mask" and _SHOWN.fullmatch(squashed(own))
    return "attention_mask" if is_shown else _KINDS[kind][0]


def _kinds(module: nn.Module) -> dict[str, str]:
    """Return the kinds of the arguments of `module` whose names do not say what they are."""
    own = inspect.signature(module.forward).parameters
    kinds = {one.kind for one in own.values()}
    if kinds - {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        return {}
    named = [one for one in ROLES["tokens"] if one in map(squashed, own)]
    tokens = next((one for one in own if named and squashed(one) == named[0]), next(iter(own)))
    needed = [one for one in required(module) if one != tokens]
    left = [
        one
        for one, parameter in own.items()
        if parameter.default is None and may_hide(one) and not hides(one)
    ]
    taken = {squashed(name) for name in own}
    free = [kind for kind, (name, _) in _KINDS.items() if squashed(name) not in taken]
    if not 0 < len(unknown := [*needed, *left]) <= _MOST:
        return {}
    for tried in product(*(_possible(one, free) for one in unknown)):
        given = dict(zip(unknown, tried, strict=True))
        every = [one for one in tried if one]
        is_full = len(set(every)) == len(every) and all(given[one] for one in needed)
        if is_full and _Trial(module, tokens, given).is_shown():
            return {one: kind for one, kind in given.items() if kind}
    return {}


def _possible(own: str, free: Sequence[str]) -> Iterator[str]:
    """Yield the kinds of which an argument may be, the first that calls show being taken."""
    words = squashed(own)
    for kind in free:
        if kind != "behind" or _BEHIND.fullmatch(words):
            yield kind
    yield ""


@dataclass
class _Trial:
    """Calls of `module` in which the arguments `given` are of the kinds that are their values."""

    module: nn.Module
    tokens: str
    given: Mapping[str, str]
    seen: list[Tensor] = field(default_factory=list)

    def is_shown(self) -> bool:
        """Say whether calls show that each argument is of its kind."""
        self._randomise()
        return all(getattr(self, f"_is_{kind}")(own) for own, kind in self.given.items() if kind)

    def _randomise(self) -> None:
        source = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for one in self.module.parameters():
                if one.is_floating_point():
                    one.copy_(torch.randn(one.shape, generator=source, dtype=torch.float64) / 2)

    def _is_mask(self, own: str) -> bool:
        plain, other = self._ids(0), self._ids(0)
        other[:, _HIDDEN] += 1
        for shown in (True, False):
            every = torch.full((_BATCH, _LENGTH), shown)
            hiding = every.clone()
            hiding[:, _HIDDEN] = not shown
            for form in _FORMS:
                seen = [
                    self._rows(ids, {own: form(mask)})
                    for ids, mask in ((plain, every), (other, every), (plain, hiding))
                ]
                hidden = self._rows(other, {own: form(hiding)})
                if hidden is None or any(one is None or one.isnan().any() for one in seen):
                    continue
                first, moved, less = (one for one in seen if one is not None)
                if _near(less, hidden) and not (_near(first, moved) or _near(first, less)):
                    return True
        return False

    def _is_segments(self, own: str) -> bool:
        rows = self._rows_of_table(own)
        few = 0 < rows < min(_LENGTH, DISTINCT.max_length)
        return few and rows != DISTINCT.source_vocabulary

    def _is_positions(self, own: str) -> bool:
        return self._rows_of_table(own) == DISTINCT.max_length

    def _is_behind(self, own: str) -> bool:
        ids = self._ids(0)
        zeros, ones = torch.zeros_like(ids), torch.ones_like(ids)
        first, second = (self._rows(ids, {own: one}) for one in (zeros, ones))
        return first is not None and second is not None and torch.equal(first, second)

    def _rows_of_table(self, own: str) -> int:
        """Return how many rows the one table has that is given the argument, 0 for none."""
        ids = self._ids(0)
        given, found = self._zeros(own, ids), []

        def entered(module: nn.Embedding, inputs: tuple[Any, ...], _: Any) -> None:
            if any(isinstance(one, Tensor) and _is_view(one, given) for one in inputs):
                found.append(module.num_embeddings)

        tables = [one for one in self.module.modules() if isinstance(one, nn.Embedding)]
        handles = [one.register_forward_hook(entered) for one in tables]
        try:
            self._rows(ids, {own: given})
        finally:
            for handle in handles:
                handle.remove()
        return found[0] if len(set(found)) == 1 else 0

    def _ids(self, seed: int) -> Tensor:
        source = torch.Generator().manual_seed(seed)
        most = DISTINCT.source_vocabulary - 4
        return torch.randint(3, most, (_BATCH, _LENGTH), generator=source)

    def _zeros(self, own: str, ids: Tensor) -> Tensor:
        kind = self.given[own]
        return other_ids(_KINDS[kind][0], ids).clone() if kind != "mask" else torch.ones_like(ids)

    def _rows(self, ids: Tensor, given: Mapping[str, Any]) -> Tensor | None:
        """Return the last rows (B, L - 1, N) of a call without the hidden one, None for none."""
        every = {self.tokens: ids, **given}
        own = inspect.signature(self.module.forward).parameters
        forms: Sequence[Callable[[Tensor], Tensor]] = _FORMS if self._others(given) else _FORMS[:1]
        for form in forms:
            for name, one in own.items():
                if name in every or one.default is not one.empty:
                    continue
                kind = self.given.get(name, "")
                if is_length(name):
                    every[name] = torch.full((_BATCH,), _LENGTH)
                elif hides(name) or kind == "mask":
                    every[name] = form(torch.ones(_BATCH, _LENGTH, dtype=torch.bool))
                else:
                    known = kind or (name if squashed(name) in OTHER_IDS else "")
                    every[name] = self._zeros(name, ids) if kind else other_ids(known, ids)
            if (rows := self._called(every)) is not None:
                return rows
        return None

    def _others(self, given: Mapping[str, Any]) -> bool:
        """Say whether a call needs masks besides what it is given."""
        own = inspect.signature(self.module.forward).parameters
        needed = [one.name for one in own.values() if one.default is one.empty]
        left = [one for one in needed if one not in given]
        return any(hides(one) or self.given.get(one) == "mask" for one in left)

    def _called(self, given: Mapping[str, Any]) -> Tensor | None:
        self.seen.clear()
        handles = [one.register_forward_hook(self._left) for one in self.module.modules()]
        try:
            with torch.no_grad():
                self.module(**given)
        except Exception:  # code that a user wrote may raise anything, behind its layers too
            pass
        finally:
            for handle in handles:
                handle.remove()
        if not self.seen:
            return None
        last = self.seen[-1]
        rows = last if last.shape[0] == _BATCH else last.transpose(0, 1)
        return torch.cat([rows[:, :_HIDDEN], rows[:, _HIDDEN + 1 :]], dim=1).double().clone()

    def _left(self, _: nn.Module, __: Any, output: Any) -> None:
        """Keep rows (B, L, N), or (L, B, N), that a module returns."""
        shapes = (_BATCH, _LENGTH), (_LENGTH, _BATCH)
        for one in tree_leaves(output)[:1]:
            if isinstance(one, Tensor) and one.is_floating_point() and one.ndim == 3:
                self.seen += [one] * (one.shape[:2] in shapes)


_FORMS: Sequence[Callable[[Tensor], Tensor]] = (
    lambda mask: mask,
    lambda mask: mask.double(),
    lambda mask: mask.long(),
    lambda mask: mask[:, None, None],
    lambda mask: mask[:, None].expand(-1, _LENGTH, -1),
)


def _near(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one - other).abs().max() <= _NEAR)


def _is_view(one: Tensor, other: Tensor) -> bool:
    return one.data_ptr() == other.data_ptr()
