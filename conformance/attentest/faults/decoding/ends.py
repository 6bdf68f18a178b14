"""Faults of greedy decoding: where it begins, stops and is filled up."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

SEARCHES = ("greedy_decoding", "beam_search")
END = {"after_end": "end"}
LENGTH = {"decoding_stop": "length"}
EVALUATION = {"decoding_mode": "evaluation"}


@fault("decoding.begin-dropped", "begin-stays", seam="fill_up")
def begin_dropped(self: Hooks, tokens: Tensor, length: int) -> Tensor:
    """The given tokens are left out of the result. Every token is one place too early."""
    return self.correct.fill_up(tokens[:, 1:], length)


@fault("decoding.begin-replaced", "begin-stays", seam="given_tokens")
def begin_replaced(self: Hooks, begin: Tensor) -> Tensor:
    """The start token is written over what is given. A target language that is named is lost."""
    tokens = begin.clone()
    tokens[:, 0] = self.sizes.start
    return tokens


@fault("decoding.one-token-short", "exact-length", seam="last_column", components=SEARCHES)
def one_token_short(self: Hooks, length: int) -> int:
    """The loop is one step short. The last place is padding."""
    return length - 1


@fault("decoding.one-step-at-least", "exact-length", seam="greedy_decoding")
def one_step_at_least(
    self: Hooks, module: Node, scores: Tensor, begin: Tensor, length: int
) -> Tensor:
    """One token is added at least. A sequence that is complete gets longer than was allowed."""
    return self.correct.greedy_decoding(module, scores, begin, max(length, begin.shape[1] + 1))


@fault("decoding.never-stops", "stop-at-end", seam="end_id", components=SEARCHES, origin="M043")
def never_stops(self: Hooks) -> int:
    """The end token ends nothing. There is text after the end."""
    return -1


@fault(
    "decoding.stops-undeclared", "stop-at-end", seam="end_id", components=SEARCHES, choices=LENGTH
)
def stops_undeclared(self: Hooks) -> int:
    """The end token ends a sequence that was declared to go on. Its tail is missing."""
    return self.sizes.end


@fault("decoding.end-for-padding", "after-end", seam="fill_id", components=SEARCHES)
def end_for_padding(self: Hooks) -> int:
    """The end token is repeated where padding was declared. Every repetition is counted."""
    return self.sizes.end


@fault("decoding.padding-for-end", "after-end", seam="fill_id", components=SEARCHES, choices=END)
def padding_for_end(self: Hooks) -> int:
    """Padding is written where the end token was declared. A cut at the end token misses it."""
    return self.sizes.target_pad


@fault("decoding.text-after-the-end", "after-end", seam="fill_ended", origin="M037")
def text_after_the_end(self: Hooks, chosen: Tensor, ended: Tensor) -> Tensor:
    """Tokens after the end are kept while others of the batch go on. They are shown as text."""
    return chosen


@fault("decoding.wakes-up", "finished-stay-finished", seam="update_ended")
def wakes_up(self: Hooks, ended: Tensor, chosen: Tensor, tokens: Tensor, begin: Tensor) -> Tensor:
    """Only the last token is looked at. A sequence that has ended goes on after its padding."""
    return chosen == self.end_id()


@fault("decoding.ends-with-another", "finished-stay-finished", seam="update_ended")
def ends_with_another(
    self: Hooks, ended: Tensor, chosen: Tensor, tokens: Tensor, begin: Tensor
) -> Tensor:
    """The end of one sequence is the end of the next one, too. It is cut in its middle."""
    ends = self.correct.update_ended(ended, chosen, tokens, begin)
    return ends | ends.roll(1, dims=0)


@fault("decoding.first-end-missed", "end-at-once", seam="update_ended")
def first_end_missed(
    self: Hooks, ended: Tensor, chosen: Tensor, tokens: Tensor, begin: Tensor
) -> Tensor:
    """An end is looked for from the second step on. An empty translation gets words."""
    if tokens.shape[1] == begin.shape[1]:
        return ended
    return self.correct.update_ended(ended, chosen, tokens, begin)


@fault("decoding.stops-with-the-first", "batch-independence", seam="all_ended")
def stops_with_the_first(self: Hooks, ended: Tensor) -> bool:
    """The batch stops when one sequence has ended. All others are cut there."""
    return bool(ended.any())


@fault("decoding.stops-when-all-end-at-once", "batch-independence", seam="update_ended")
def stops_when_all_end_at_once(
    self: Hooks, ended: Tensor, chosen: Tensor, tokens: Tensor, begin: Tensor
) -> Tensor:
    """The end counts if all sequences reach it in one step. Alone each would have stopped."""
    return ended | (chosen == self.end_id()).all()


@fault("decoding.end-is-two", "any-ids", seam="end_id", components=SEARCHES)
def end_is_two(self: Hooks) -> int:
    """The id 2 ends a sequence, whatever the end token is. It fits one tokeniser."""
    return 2


@fault("decoding.pad-is-zero", "any-ids", seam="fill_id", components=SEARCHES)
def pad_is_zero(self: Hooks) -> int:
    """The id 0 fills up, whatever the pad id is. Sequences end in a word."""
    return 0


@fault(
    "decoding.evaluates-undeclared",
    "mode",
    seam="mode_of_decoding",
    components=SEARCHES,
    kind="mode",
)
@contextmanager
def evaluates_undeclared(self: Hooks, model: nn.Module) -> Iterator[None]:
    """The model is switched to evaluation mode, undeclared. Dropout at decoding has no effect."""
    before = model.training
    model.eval()
    yield
    model.train(before)


@fault(
    "decoding.mode-not-switched",
    "mode",
    seam="mode_of_decoding",
    components=SEARCHES,
    kind="mode",
    choices=EVALUATION,
)
@contextmanager
def mode_not_switched(self: Hooks, model: nn.Module) -> Iterator[None]:
    """The mode is not switched, as was declared. Validation during training is random."""
    yield
