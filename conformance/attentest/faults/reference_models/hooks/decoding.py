"""The hooks of greedy decoding and of sampling."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.modules import Node
from attentest_spec.torch import Script


class StepHooks(Base):
    """The common part of greedy decoding and beam search: one question to the model."""

    def make_decoding(self, step: str) -> Node:
        """Build the part that decodes with a scripted model; a call goes to the hook `step`."""
        self.check_sizes("target_vocabulary")
        return Node(self, step, script=Script(self.sizes))

    @contextmanager
    def mode_of_decoding(self, model: nn.Module) -> Iterator[None]:
        """Switch to evaluation mode and back where that is chosen."""
        before = model.training
        if self.choices.decoding_mode == "evaluation":
            model.eval()
        yield
        model.train(before)

    def memory_of(self, model: Script) -> Tensor:
        """Return the memory (B, 1, D) of the source, which is encoded once."""
        return model.memory(model.source)

    def ask(self, model: Script, tokens: Tensor, memory: Tensor) -> Tensor:
        """Return the scores (B, T, V) after every token of the prefixes (B, T)."""
        return model.answer(tokens, memory)

    @abstractmethod
    def last_real(self, output: Tensor, tokens: Tensor) -> Tensor:
        """Return the scores (B, V) at the last token that is no padding."""

    def next_scores(self, model: Script, tokens: Tensor, memory: Tensor) -> Tensor:
        """Return the scores (B, V) of the tokens after the prefixes (B, T)."""
        return self.last_real(self.ask(model, tokens, memory), tokens)

    @abstractmethod
    def append(self, tokens: Tensor, chosen: Tensor) -> Tensor:
        """Return tokens (.., T) with one more column, `chosen` (..)."""

    def end_id(self) -> int:
        """Return the id that ends a sequence, one that is no id where nothing does."""
        return self.sizes.end if self.choices.decoding_stop == "end-token" else -1

    def fill_id(self) -> int:
        """Return the id that follows an end."""
        chosen = self.choices.after_end
        return self.sizes.target_pad if chosen == "padding" else self.sizes.end

    def last_column(self, length: int) -> int:
        """Return the number of columns to decode."""
        return length


class GreedyHooks(StepHooks):
    """Greedy decoding: the best token, again and again."""

    def greedy_decoding(self, module: Node, scores: Tensor, begin: Tensor, length: int) -> Tensor:
        """Continue the given tokens (B, P) to (B, M)."""
        model = module.script.play(scores)
        with self.mode_of_decoding(model):
            return self.fill_up(self.continue_greedily(model, begin, length), length)

    def continue_greedily(self, model: Script, begin: Tensor, length: int) -> Tensor:
        """Append tokens until all sequences have ended, or have their length."""
        memory, tokens = self.memory_of(model), self.given_tokens(begin)
        ended = torch.zeros(len(begin), dtype=torch.bool, device=begin.device)
        while tokens.shape[1] < self.last_column(length) and not self.all_ended(ended):
            best = self.choose(self.next_scores(model, tokens, memory))
            chosen = self.fill_ended(best, ended)
            ended = self.update_ended(ended, chosen, tokens, begin)
            tokens = self.append(tokens, chosen)
        return tokens

    def given_tokens(self, begin: Tensor) -> Tensor:
        """Return the tokens that the model is asked about first."""
        return begin

    @abstractmethod
    def choose(self, following: Tensor) -> Tensor:
        """Return the best tokens (B) by their scores (B, V)."""

    @abstractmethod
    def fill_ended(self, chosen: Tensor, ended: Tensor) -> Tensor:
        """Return the chosen tokens (B), the filling where a sequence has ended."""

    def update_ended(self, ended: Tensor, chosen: Tensor, tokens: Tensor, begin: Tensor) -> Tensor:
        """Return which sequences (B) have ended, now that `chosen` follows `tokens`."""
        return ended | (chosen == self.end_id())

    def all_ended(self, ended: Tensor) -> bool:
        """Say whether nothing is left to decode."""
        return bool(ended.all())

    def fill_up(self, tokens: Tensor, length: int) -> Tensor:
        """Return tokens (B, T) with the filling up to the column `length`."""
        missing = length - tokens.shape[1]
        return nn.functional.pad(tokens, (0, missing), value=self.fill_id())


class SamplingHooks(Base):
    """The distribution that the next token is drawn from."""

    def sampling(self, module: Node, logits: Tensor) -> Tensor:
        """Return the probabilities (B, V) for logits (B, V)."""
        first = self.choices.filter_order == "temperature-first"
        kept = self.filter_out(self.heat(logits) if first else logits)
        return self.normalise_kept(kept if first else self.heat(kept))

    def heat(self, logits: Tensor) -> Tensor:
        """Divide the logits by the temperature; at 0 the greatest alone is left."""
        temperature = self.temperature()
        if temperature == 0:
            return logits.masked_fill(logits < logits.amax(dim=-1, keepdim=True), -torch.inf)
        return logits / temperature

    def temperature(self) -> float:
        """Return the temperature."""
        return self.sizes.temperature

    def filter_out(self, logits: Tensor) -> Tensor:
        """Return the logits (B, V) with minus infinity for what top-k and top-p leave out."""
        few = self.keep_top_k(logits, self.count_kept(logits.shape[-1]))
        return self.keep_top_p(few, self.whole(few, logits), self.share_kept())

    def count_kept(self, vocabulary: int) -> int:
        """Return how many tokens top-k keeps."""
        return min(self.sizes.top_k, vocabulary) or vocabulary

    def share_kept(self) -> float:
        """Return the share that top-p keeps."""
        return self.sizes.top_p

    def whole(self, few: Tensor, logits: Tensor) -> Tensor:
        """Return the logits of whose probabilities top-p takes the sum."""
        return few if self.choices.nucleus == "of-what-is-left" else logits

    @abstractmethod
    def keep_top_k(self, logits: Tensor, count: int) -> Tensor:
        """Return the logits (B, V) with minus infinity below the `count` greatest."""

    @abstractmethod
    def keep_top_p(self, logits: Tensor, whole: Tensor, share: float) -> Tensor:
        """Return the logits (B, V), minus infinity outside of the nucleus of `whole` (B, V)."""

    def normalise_kept(self, logits: Tensor) -> Tensor:
        """Return the softmax of the logits that are left."""
        return torch.softmax(logits, dim=-1)
