"""Faults of greedy decoding: what is chosen, and what the model is asked."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node
from attentest_spec.torch import Script

SEARCHES = ("greedy_decoding", "beam_search")
LOGITS = {"output": "logits"}
LOGARITHMS = {"output": "log-probabilities"}


@fault("decoding.least-token", "greedy-formula", seam="choose")
def least_token(self: Hooks, following: Tensor) -> Tensor:
    """The least likely token is taken. The sort was ascending, and the text is noise."""
    return following.argmin(dim=-1)


@fault("decoding.second-best-token", "greedy-formula", seam="choose")
def second_best_token(self: Hooks, following: Tensor) -> Tensor:
    """The second best token is taken. An index into the ranks is one too high."""
    return following.topk(2, dim=-1).indices[:, 1]


@fault("decoding.drawn-token", "greedy-formula", seam="choose", kind="state")
def drawn_token(self: Hooks, following: Tensor) -> Tensor:
    """The token is drawn where the best one is meant. Every evaluation gives another score."""
    return torch.multinomial(following.double().softmax(dim=-1), 1).squeeze(-1)


@fault("decoding.previous-token-fed", "greedy-own-choice", seam="ask", components=SEARCHES)
def previous_token_fed(self: Hooks, model: Script, tokens: Tensor, memory: Tensor) -> Tensor:
    """The model is given the token before the last one twice. It never sees what it wrote last."""
    fed = tokens.clone()
    fed[:, 1:] = tokens[:, :-1]
    return self.correct.ask(model, fed, memory)


@fault("decoding.begin-fed-again", "greedy-own-choice", seam="ask", components=SEARCHES)
def begin_fed_again(self: Hooks, model: Script, tokens: Tensor, memory: Tensor) -> Tensor:
    """The start token is fed at every step. The model answers about the first token for ever."""
    return self.correct.ask(model, tokens[:, :1].expand_as(tokens), memory)


@fault("decoding.first-position-read", "last-position", seam="last_real", components=SEARCHES)
def first_position_read(self: Hooks, output: Tensor, tokens: Tensor) -> Tensor:
    """The scores at the first position are read. The first new token is repeated."""
    return output[:, 0]


@fault("decoding.position-one-too-early", "last-position", seam="last_real", components=SEARCHES)
def position_one_too_early(self: Hooks, output: Tensor, tokens: Tensor) -> Tensor:
    """The scores one position too early are read. Every new token comes twice."""
    return output[:, max(output.shape[1] - 2, 0)]


@fault("decoding.scores-averaged", "last-position", seam="last_real", components=SEARCHES)
def scores_averaged(self: Hooks, output: Tensor, tokens: Tensor) -> Tensor:
    """The scores are the mean over all positions. The first words never lose their influence."""
    return output.mean(dim=1)


@fault(
    "decoding.last-column-read",
    "right-padding",
    seam="last_real",
    components=SEARCHES,
    origin="M038",
)
def last_column_read(self: Hooks, output: Tensor, tokens: Tensor) -> Tensor:
    """The last column is read, padding or not. A padded prompt is continued as another one."""
    return output[:, -1]


@fault(
    "decoding.position-by-count",
    "left-padding",
    seam="last_real",
    components=SEARCHES,
    origin="M038",
)
def position_by_count(self: Hooks, output: Tensor, tokens: Tensor) -> Tensor:
    """The position is the number of real tokens. It is wrong where padding is on the left."""
    last = (tokens != self.sizes.target_pad).sum(dim=1) - 1
    return output[torch.arange(len(output), device=output.device), last]


@fault("decoding.prompt-cut-to-its-start", "prompt", seam="ask", components=SEARCHES)
def prompt_cut_to_its_start(self: Hooks, model: Script, tokens: Tensor, memory: Tensor) -> Tensor:
    """The model is asked about the start token alone until something is written.

    Several given tokens are continued as if there were one.
    """
    self.memory.setdefault("given", tokens.shape[1])
    answer = self.correct.ask(model, tokens[:, :1], memory)
    if tokens.shape[1] > 1 and tokens.shape[1] == self.memory["given"]:
        return answer.expand(-1, tokens.shape[1], -1)
    return self.correct.ask(model, tokens, memory)


@fault("decoding.last-given-token-alone", "prompt", seam="given_tokens")
def last_given_token_alone(self: Hooks, begin: Tensor) -> Tensor:
    """Only the last given token is continued. The result is shorter at its beginning."""
    return begin[:, -1:]


@fault("decoding.random-among-equals", "ties", seam="choose", kind="state")
def random_among_equals(self: Hooks, following: Tensor) -> Tensor:
    """Among equal scores one is drawn. A model of half precision is never evaluated twice alike."""
    best = following == following.amax(dim=-1, keepdim=True)
    return torch.multinomial(best.double(), 1).squeeze(-1)


@fault("decoding.equals-added-up", "ties", seam="choose")
def equals_added_up(self: Hooks, following: Tensor) -> Tensor:
    """The ids of all best tokens are added up. Where two are equal, a third one is written."""
    best = following == following.amax(dim=-1, keepdim=True)
    ids = torch.arange(following.shape[-1], device=following.device)
    return (best * ids).sum(dim=-1) % following.shape[-1]


@fault("decoding.exponential-of-logits", "impossible-tokens", seam="choose", choices=LOGITS)
def exponential_of_logits(self: Hooks, following: Tensor) -> Tensor:
    """Exponentials of logits are compared. Large ones are all infinite, and the first id wins."""
    return following.exp().argmax(dim=-1)


@fault("decoding.impossible-as-zero", "impossible-tokens", seam="choose", choices=LOGARITHMS)
def impossible_as_zero(self: Hooks, following: Tensor) -> Tensor:
    """Infinities become 0 before logarithms are compared. Impossible tokens are the best ones."""
    return following.nan_to_num(neginf=0.0).argmax(dim=-1)


@fault("decoding.half-precision-compared", "greedy-formula", seam="choose", choices=LOGITS)
def half_precision_compared(self: Hooks, following: Tensor) -> Tensor:
    """Scores are rounded to whole numbers before they are compared. Close tokens are exchanged."""
    return following.round().argmax(dim=-1)


@fault("decoding.tokens-as-floats", "token-type", seam="fill_up")
def tokens_as_floats(self: Hooks, tokens: Tensor, length: int) -> Tensor:
    """Tokens are returned as floats. The next lookup in an embedding fails."""
    return self.correct.fill_up(tokens, length).to(torch.float32)


@fault("decoding.tokens-in-32-bits", "token-type", seam="fill_up")
def tokens_in_32_bits(self: Hooks, tokens: Tensor, length: int) -> Tensor:
    """Tokens are returned in 32 bits. Comparisons with the targets are made in another type."""
    return self.correct.fill_up(tokens, length).to(torch.int32)


@fault("decoding.memory-of-the-first", "batch-independence", seam="memory_of", components=SEARCHES)
def memory_of_the_first(self: Hooks, model: Script) -> Tensor:
    """The memory of the first sequence serves all. A batch is one translation, many times."""
    memory = self.correct.memory_of(model)
    return memory[:1].expand_as(memory)


@fault(
    "decoding.memory-kept",
    "no-memory-of-calls",
    seam="memory_of",
    components=SEARCHES,
    kind="state",
)
def memory_kept(self: Hooks, model: Script) -> Tensor:
    """The memory is computed once and kept. The second batch is decoded from that of the first."""
    kept: Tensor = self.memory.setdefault("memory", self.correct.memory_of(model))
    return kept.index_select(0, torch.arange(len(model.source)) % len(kept))


@fault("decoding.begin-written-into", "input-untouched", seam="continue_greedily")
def begin_written_into(self: Hooks, model: Script, begin: Tensor, length: int) -> Tensor:
    """The last token is written into the given ones. The caller's next call starts with it."""
    tokens = self.correct.continue_greedily(model, begin, length)
    begin[:, -1] = tokens[:, -1]
    return tokens


@fault("decoding.begin-shifted-in-place", "input-untouched", seam="given_tokens")
def begin_shifted_in_place(self: Hooks, begin: Tensor) -> Tensor:
    """The given tokens are replaced in place by those of the end. The caller's batch changes."""
    tokens = begin.clone()
    begin.fill_(self.sizes.end)
    return tokens


@fault("decoding.left-in-evaluation", "mode-comes-back", seam="greedy_decoding", kind="mode")
def left_in_evaluation(
    self: Hooks, module: Node, scores: Tensor, begin: Tensor, length: int
) -> Tensor:
    """The model stays in evaluation mode. Training goes on without dropout after a validation."""
    result = self.correct.greedy_decoding(module, scores, begin, length)
    module.script.eval()
    return result


@fault("decoding.left-in-training", "mode-comes-back", seam="greedy_decoding", kind="mode")
def left_in_training(
    self: Hooks, module: Node, scores: Tensor, begin: Tensor, length: int
) -> Tensor:
    """The model is in training mode afterwards, whatever it was before. Evaluation becomes random.

    Code that always calls `train` at its end does this.
    """
    result = self.correct.greedy_decoding(module, scores, begin, length)
    module.script.train()
    return result
