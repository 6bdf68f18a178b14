"""The hooks of beam search."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.decoding import StepHooks
from attentest.faults.reference_models.modules import Node
from attentest_spec.torch import Script


@dataclass
class Beam:
    """The hypotheses of a batch: tokens (B, N, T), sums of logarithms, counts and ends (B, N)."""

    tokens: Tensor
    totals: Tensor
    counts: Tensor
    ended: Tensor


@dataclass(frozen=True)
class Finished:
    """A finished hypothesis that waits aside."""

    tokens: Tensor
    total: Tensor
    count: int
    ended: bool = True


class BeamHooks(StepHooks):
    """Beam search, with finished hypotheses in the beam or aside."""

    def beam_search(
        self, module: Node, scores: Tensor, begin: Tensor, length: int, beams: int
    ) -> tuple[Tensor, Tensor]:
        """Return the best hypotheses (B, N, M) for given tokens (B, P), and their scores (B, N)."""
        model = module.script.play(scores)
        with self.mode_of_decoding(model):
            search = self.search_in_beam if self.waits_in_beam() else self.search_aside
            found = search(model, begin, length, beams)
        return self.ranked(found, begin, length, beams)

    def waits_in_beam(self) -> bool:
        """Say whether finished hypotheses keep their place in the beam."""
        return self.choices.finished_beams == "in-beam"

    # The steps that both searches have

    def first_beam(self, begin: Tensor, beams: int, like: Tensor) -> Beam:
        """Return copies of the given tokens, of which the first alone is alive."""
        shape = (len(begin), beams)
        return Beam(
            self.first_tokens(begin, beams),
            self.first_totals(like.new_zeros(shape)),
            torch.zeros(shape, dtype=torch.long, device=begin.device),
            torch.zeros(shape, dtype=torch.bool, device=begin.device),
        )

    def first_tokens(self, begin: Tensor, beams: int) -> Tensor:
        """Return the given tokens (B, P) for every beam, (B, N, P)."""
        return begin[:, None].expand(-1, beams, -1)

    def first_totals(self, zeros: Tensor) -> Tensor:
        """Return the sums (B, N) of the first beam: all but one must lose."""
        totals = torch.full_like(zeros, -torch.inf)
        totals[:, 0] = 0.0
        return totals

    @abstractmethod
    def spread_memory(self, memory: Tensor, beams: int) -> Tensor:
        """Return the memory (B * N, S, D) of every beam, for that (B, S, D) of every sequence."""

    def step_logs(self, model: Script, tokens: Tensor, memory: Tensor) -> Tensor:
        """Return the log-probabilities (B, N, V) of the next tokens."""
        batch, beams, _ = tokens.shape
        following = self.next_scores(model, tokens.flatten(0, 1), memory)
        return self.logarithms(following).view(batch, beams, -1)

    @abstractmethod
    def logarithms(self, following: Tensor) -> Tensor:
        """Return the log-probabilities that the model's scores are, as declared."""

    @abstractmethod
    def pick(self, values: Tensor, count: int) -> Tensor:
        """Return the places (B, count) of the greatest of the values (B, N * V), in order."""

    @abstractmethod
    def reorder(self, values: Tensor, origin: Tensor) -> Tensor:
        """Return values (B, N, ..) of the beams that `origin` (B, N) names."""

    def penalised(self, totals: Tensor, counts: Tensor, ended: Tensor, given: int) -> Tensor:
        """Return the sums divided by the penalty of their lengths."""
        length = self.counted_tokens(counts, ended, given).to(totals.dtype)
        return self.apply_penalty(totals, self.penalty(length))

    def counted_tokens(self, counts: Tensor, ended: Tensor, given: int) -> Tensor:
        """Return the tokens that the penalty counts, for `counts` new and `given` first ones."""
        if self.choices.counted_length == "all":
            return counts + given
        return counts - ended.long() if self.choices.counted_length == "without-end" else counts

    def penalty(self, length: Tensor) -> Tensor:
        """Return the penalty of the counted tokens."""
        if self.choices.length_penalty == "none":
            return torch.ones_like(length)
        base = (5 + length) / 6 if self.choices.length_penalty == "wu" else length.clamp(min=1)
        return torch.pow(base, self.sizes.alpha)

    def apply_penalty(self, totals: Tensor, penalty: Tensor) -> Tensor:
        """Divide."""
        return totals / penalty

    # Finished hypotheses in the beam

    def search_in_beam(self, model: Script, begin: Tensor, length: int, beams: int) -> Beam:
        """Search until every hypothesis has ended, or has its length."""
        memory = self.spread_memory(self.memory_of(model), beams)
        beam = self.first_beam(begin, beams, model.scores)
        while beam.tokens.shape[2] < self.last_column(length) and not self.is_over(beam.ended):
            logs = self.step_logs(model, beam.tokens, memory)
            beam = self.next_beam(beam, logs, begin.shape[1])
        return beam

    def is_over(self, ended: Tensor) -> bool:
        """Say whether no hypothesis (B, N) is open."""
        return bool(ended.all())

    def next_beam(self, beam: Beam, logs: Tensor, given: int) -> Beam:
        """Return the best extensions of a beam by the log-probabilities (B, N, V)."""
        batch, beams, vocabulary = logs.shape
        sums = self.extend(beam.totals, logs, beam.ended)
        counts = beam.counts + (~beam.ended).long()
        ends = beam.ended[..., None] | self.is_end(torch.arange(vocabulary, device=logs.device))
        values = self.values_of(sums, logs, counts, ends, given)
        picked = self.pick(values.view(batch, -1), beams)
        origin, token = picked // vocabulary, picked % vocabulary
        return Beam(
            self.append(self.reorder(beam.tokens, origin), token),
            self.sums_of(sums, picked),
            self.reorder(counts, origin),
            self.reorder(beam.ended, origin) | self.is_end(token),
        )

    def values_of(
        self, sums: Tensor, logs: Tensor, counts: Tensor, ends: Tensor, given: int
    ) -> Tensor:
        """Return what candidates (B, N, V) are ranked by: their scores."""
        return self.penalised(sums, counts[..., None].expand_as(sums), ends, given)

    def sums_of(self, sums: Tensor, picked: Tensor) -> Tensor:
        """Return the sums (B, N) of the picked candidates."""
        return sums.flatten(1).gather(1, picked)

    def is_end(self, token: Tensor) -> Tensor:
        """Say which tokens end a sequence."""
        return token == self.end_id()

    def extend(self, totals: Tensor, logs: Tensor, ended: Tensor) -> Tensor:
        """Return the sums (B, N, V) with one more token, one that costs nothing after an end."""
        kept = torch.full_like(logs, -torch.inf)
        kept[..., self.fill_id()] = 0.0
        return totals[..., None] + torch.where(ended[..., None], kept, logs)

    # Finished hypotheses aside

    def search_aside(
        self, model: Script, begin: Tensor, length: int, beams: int
    ) -> list[list[Finished]]:
        """Search with a list of finished hypotheses for each sequence."""
        memory = self.spread_memory(self.memory_of(model), beams)
        beam = self.first_beam(begin, beams, model.scores)
        aside: list[list[Finished]] = [[] for _ in begin]
        closed = [False for _ in begin]
        while beam.tokens.shape[2] < self.last_column(length):
            closed = [self.is_closed(len(one), beams) for one in aside]
            if all(closed):
                break
            beam = self.open_beam(beam, self.step_logs(model, beam.tokens, memory), aside, closed)
        if self.choices.beam_stop == "n-finished":
            closed = [self.is_closed(len(one), beams) for one in aside]
        for number, one in enumerate(aside):
            if not closed[number]:
                one += self.still_open(beam, number)
        return aside

    def is_closed(self, finished: int, beams: int) -> bool:
        """Say whether a sequence with so many finished hypotheses is done."""
        return self.choices.beam_stop != "length" and finished >= beams

    def still_open(self, beam: Beam, number: int) -> list[Finished]:
        """Return the open hypotheses of one sequence, which are results at the greatest length."""
        rows = zip(beam.tokens[number], beam.totals[number], beam.counts[number], strict=True)
        return [Finished(tokens, total, int(count), ended=False) for tokens, total, count in rows]

    def open_beam(
        self, beam: Beam, logs: Tensor, aside: list[list[Finished]], closed: list[bool]
    ) -> Beam:
        """Return the best open extensions, and set aside those that end among the first."""
        batch, beams, vocabulary = logs.shape
        sums = (beam.totals[..., None] + logs).view(batch, -1)
        ranked = self.pick(sums, sums.shape[1])
        kept = []
        for number, places in enumerate(ranked.tolist()):
            ends = [place % vocabulary == self.end_id() for place in places]
            kept.append([place for place, end in zip(places, ends, strict=True) if not end][:beams])
            for place in [] if closed[number] else self.finishing(places, ends, beams):
                origin = place // vocabulary
                tokens = self.append(beam.tokens[number, origin], logs.new_tensor(self.end_id()))
                count = int(beam.counts[number, origin]) + 1
                aside[number].append(Finished(tokens, sums[number, place], count))
        picked = torch.tensor(kept, device=logs.device)
        origins = picked // vocabulary
        return Beam(
            self.append(self.reorder(beam.tokens, origins), picked % vocabulary),
            self.sums_of(sums, picked),
            self.reorder(beam.counts, origins) + 1,
            beam.ended,
        )

    def finishing(self, places: list[int], ends: list[bool], beams: int) -> list[int]:
        """Return the places, out of those in order, of hypotheses that are finished."""
        return [place for place, end in zip(places[:beams], ends, strict=False) if end]

    # The result

    def ranked(
        self, found: Beam | list[list[Finished]], begin: Tensor, length: int, beams: int
    ) -> tuple[Tensor, Tensor]:
        """Return the tokens (B, N, M) and scores (B, N) of the best hypotheses."""
        beam = found if isinstance(found, Beam) else self.collected(found, length)
        scores = self.penalised(beam.totals, beam.counts, beam.ended, begin.shape[1])
        order = self.order_of(scores, beam.totals)[:, :beams]
        missing = length - beam.tokens.shape[2]
        tokens = torch.nn.functional.pad(beam.tokens, (0, missing), value=self.fill_id())
        return self.reorder(tokens, order), self.reorder(scores, order)

    def order_of(self, scores: Tensor, totals: Tensor) -> Tensor:
        """Return the order (B, N) of the results: by their scores (B, N), the best first."""
        return scores.argsort(dim=1, descending=True)

    def collected(self, found: list[list[Finished]], length: int) -> Beam:
        """Return all hypotheses aside as one beam; a sequence with fewer gets some that lose."""
        most = max(map(len, found))
        rows = [[*one, *[one[0]] * (most - len(one))] for one in found]
        real = torch.tensor([[n < len(one) for n in range(most)] for one in found])
        tokens = torch.stack(
            [
                torch.stack(
                    [
                        torch.nn.functional.pad(
                            one.tokens, (0, length - len(one.tokens)), value=self.fill_id()
                        )
                        for one in row
                    ]
                )
                for row in rows
            ]
        )
        totals = torch.stack([torch.stack([one.total for one in row]) for row in rows])
        device = totals.device
        return Beam(
            tokens,
            totals.masked_fill(~real.to(device), -torch.inf),
            torch.tensor([[one.count for one in row] for row in rows], device=device),
            torch.tensor([[one.ended for one in row] for row in rows], device=device),
        )
