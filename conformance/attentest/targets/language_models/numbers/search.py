"""The search for the choices and the parameter map of a decoder-only model, by numbers alone.

A formula is taken where the call of the model computes its numbers, step by step from the tokens to
the logits. What no option explains ends the search, with the name of the step.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from attentest.targets.language_models.numbers.attention import attentions
from attentest.targets.language_models.numbers.ends import embeddings, logits
from attentest.targets.language_models.numbers.findings import Found, State
from attentest.targets.language_models.numbers.mistakes import SUBLAYERS
from attentest.targets.language_models.numbers.networks import networks
from attentest.targets.language_models.numbers.norms import left_out, norms
from attentest.targets.language_models.numbers.reader import Reader
from attentest_spec import CHOICES
from attentest_spec.choices import Value
from attentest_spec.setting import Array, Floats

PRE = ("pre", "sandwich")
"""The options of `block_norms` with a norm before each sublayer."""

_STEPS = 10
"""The number of steps of a block, at most."""

_BETWEEN = 3
"""The steps between attention and the network, which do not follow each other in some blocks."""


def search(
    reader: Reader, start: Mapping[str, Value], tokens: Array, output: Floats
) -> Found | None:
    """Return the choices and views that give the `output` (B, T, V) for `tokens` (B, T).

    `start` are choices that are known before; None where no options give it.
    """
    first = Found(reader.sizes, dict(start))
    for state in embeddings(reader, first, tokens):
        for reached in _blocks(reader, state, 0):
            reader.looks_for(_STEPS * (reader.sizes.layers + 1), "the final norm and the logits")
            for found in _ends(reader, reached, output):
                return found
            if reader.is_late:
                return None
    return None


def _blocks(reader: Reader, state: State, number: int) -> Iterator[State]:
    if number == reader.sizes.layers:
        yield state
        return
    for after in _block(reader, state, number):
        if number == 0 and reader.by_layer:
            after = replace(after, found=after.found.freed(reader.by_layer))
        yield from _blocks(reader, after, number + 1)


def _ends(reader: Reader, state: State, output: Floats) -> Iterator[Found]:
    for option in ("present", "none"):
        found = state.found.but({"final_norm": option}, {})
        if found is None:
            continue
        normed = norms(reader, found, "norm", state.x) if option == "present" else [state]
        for one in normed:
            after = one.found.but({"final_norm": option}, {})
            if after:
                yield from logits(reader, State(after, one.x), output)


def _block(reader: Reader, state: State, number: int) -> Iterator[State]:
    """Yield what follows the block `number`, with norms and sublayers in any place."""
    layouts = [one.name for one in CHOICES["block_layout"].options]
    for where in sorted((one.name for one in CHOICES["block_norms"].options), key=PRE[:1].count)[
        ::-1
    ]:
        for layout in layouts:
            found = state.found.but({"block_norms": where, "block_layout": layout}, {})
            if found is None or reader.is_late:
                continue
            block = _Block(reader, number, where)
            sequential = layout == "sequential"
            after = block.sequential if sequential else block.parallel
            yield from after(State(found, state.x), one_norm=layout == "parallel-one-norm")


class _Block:
    """One block with its norms in one place."""

    def __init__(self, reader: Reader, number: int, where: str) -> None:
        self.reader = reader
        self.path = f"layers.{number}"
        self.step = _STEPS * (number + 1)
        self.where = where

    def sequential(self, state: State, *, one_norm: bool) -> Iterator[State]:
        """Yield what follows attention, and then the network, each beside a residual path."""
        for begun, attended in self._each(self._attended, state, "self_attention"):
            x = self._beside(state.x, "self_attention", begun.x) + attended.x
            self._note_sum(x, "self_attention")
            total = State(attended.found, x)
            self.reader.looks_for(self.step + 4, f"the sum after {self.path}.self_attention")
            for middle in self._closed(total, "self_attention"):
                for opened, found in self._each(self._networked, middle, "feed_forward"):
                    self.reader.looks_for(self.step + 8, f"the sum after {self.path}.feed_forward")
                    x = self._beside(middle.x, "feed_forward", opened.x, state.x) + found.x
                    self._note_line(attended.x, found.x)
                    self._note_sum(x, "feed_forward")
                    yield from self._closed(State(found.found, x), "feed_forward")

    def _each(
        self, sublayer: Callable[[State, list[State]], Iterator[State]], state: State, name: str
    ) -> Iterator[tuple[State, State]]:
        """Yield what the sublayer `name` is given, with what it returns."""
        for opened in self._opened(state, name):
            for found in sublayer(state, [opened]):
                yield opened, found

    def _beside(
        self, x: Floats, name: str, opened: Floats, start: Floats | None = None
    ) -> Floats | float:
        """Return the residual path beside the sublayer `name`, 0 where it is missing.

        It is `start`, the input of the block, where it begins too early, and `opened`, the
        normalised input, where it begins too late.
        """
        mistaken = self.reader.mistaken
        if mistaken and name in mistaken.inner:
            return opened
        if mistaken and name in mistaken.early and start is not None:
            return start
        return 0.0 if mistaken and name in mistaken.bare else x

    def _note_line(self, attended: Floats, networked: Floats) -> None:
        """Note the line that computes the sublayer without a residual path, if it is one."""
        mistaken = self.reader.mistaken
        if mistaken and len(mistaken.bare) == 1 and self.reader.begun is None:
            both, (bare,) = [attended, networked], mistaken.bare
            own = both.pop(SUBLAYERS.index(bare))
            self.reader.begun = self.reader.trace.place_beside(own, *both)

    def _note_sum(self, x: Floats, name: str) -> None:
        """Note the line that adds the sublayer `name` to another path, if it is the mistake."""
        mistaken = self.reader.mistaken
        if mistaken and name in {*mistaken.inner, *mistaken.early} and self.reader.begun is None:
            self.reader.begun = self.reader.trace.place(x)

    def parallel(self, state: State, *, one_norm: bool) -> Iterator[State]:
        """Yield what follows both sublayers beside one residual path."""
        for opened in self._opened(state, "self_attention"):
            for attended in self._attended(state, [opened]):
                inner = State(attended.found, opened.x if one_norm else state.x)
                second = [inner] if one_norm else self._opened(inner, "feed_forward", _BETWEEN)
                before = _BETWEEN if one_norm or self.where not in PRE else 0
                for found in self._networked(inner, second, before):
                    self.reader.looks_for(self.step + 8, f"the sum of {self.path}")
                    total = State(found.found, state.x + attended.x + found.x)
                    yield from self._closed(total, "self_attention")

    def _opened(self, state: State, name: str, before: int = 0) -> Iterator[State]:
        step = self.step + (0 if name == "self_attention" else 5)
        if self.where in PRE:
            self.reader.looks_for(step - before, f"the norms of {self.path}")
            path, mistaken = f"{self.path}.{name}_norm", self.reader.mistaken
            if mistaken and name in mistaken.normed:
                kept = mistaken.normed[name]
                other = kept and f"{self.path}.{kept}_norm"
                yield from left_out(self.reader, state.found, path, state.x, other)
                return
            yield from norms(self.reader, state.found, path, state.x)
        else:
            yield state

    def _attended(self, state: State, opened: Iterator[State] | list[State]) -> Iterator[State]:
        path = f"{self.path}.self_attention"
        for one in opened:
            for found in attentions(self.reader, one.found, path, one.x, self.step + 1):
                yield from self._ended(found, "self_attention")

    def _networked(
        self, state: State, opened: Iterator[State] | list[State], before: int = 0
    ) -> Iterator[State]:
        path = f"{self.path}.feed_forward"
        for one in opened:
            step = self.step + 6
            for found in networks(self.reader, one.found, path, one.x, step, before=before):
                yield from self._ended(found, "feed_forward")

    def _ended(self, state: State, name: str) -> Iterator[State]:
        """Yield the branch as it is, or under a norm of its own."""
        ends = {"post-branch": f"{name}_norm", "sandwich": f"{name}_branch_norm"}
        if self.where in ends:
            path = f"{self.path}.{ends[self.where]}"
            yield from norms(self.reader, state.found, path, state.x)
        else:
            yield state

    def _closed(self, state: State, name: str) -> Iterator[State]:
        """Yield the sum that the call computes, or the norm of it."""
        if not self.reader.holds(state.x):
            return
        if self.where == "post":
            path = f"{self.path}.{name}_norm"
            yield from norms(self.reader, state.found, path, state.x)
        else:
            yield state
