"""Unusual greedy decoding, beam searches and samplers."""

import heapq
import math
from typing import Any

import torch
from torch import Tensor

from attentest.faults.unusual.member import member
from attentest_spec import Sizes
from attentest_spec.torch import Recipe, Script


def shrinking_batch(script: Script, scores: Tensor, begin: Tensor, length: int) -> Tensor:
    """Decode a batch from which every sequence that has ended is taken out."""
    memory = script.play(scores).memory(script.source)
    result = torch.full((len(begin), length), script.pad, device=begin.device)
    result[:, : begin.shape[1]] = begin
    alive = torch.arange(len(begin), device=begin.device)
    for place in range(begin.shape[1], length):
        answer = script.answer(result[alive, :place], memory[alive])
        real = result[alive, :place] != script.pad
        last = place - 1 - real.flip(1).int().argmax(dim=1)
        chosen = answer[torch.arange(len(alive)), last].topk(1).indices.squeeze(1)
        result[alive, place] = chosen
        alive = alive[chosen != script.end]
        if not len(alive):
            break
    return result


def one_by_one(script: Script, scores: Tensor, begin: Tensor, length: int) -> Tensor:
    """Decode by recursion, sequence by sequence; the end token fills a sequence up."""
    script.play(scores)

    def longer(source: Tensor, tokens: list[int], new: int) -> list[int]:
        if len(tokens) == length:
            return tokens
        if new and tokens[-1] == script.end:
            return longer(source, [*tokens, script.end], new)
        given = torch.tensor([[one for one in tokens if one != script.pad]])
        following = script(source, given)[0, -1]
        best = max(range(len(following)), key=lambda token: float(following[token]))
        return longer(source, [*tokens, best], new + 1)

    rows = [longer(script.source[n : n + 1], row.tolist(), 0) for n, row in enumerate(begin)]
    return torch.tensor(rows, device=begin.device)


def queue_of_hypotheses(
    script: Script, scores: Tensor, begin: Tensor, length: int, beams: int
) -> tuple[Tensor, Tensor]:
    """Search with a heap for each sequence and a call for each hypothesis; no length penalty."""
    script.play(scores)
    found = []
    for number, row in enumerate(begin.tolist()):
        source = script.source[number : number + 1]
        held: list[tuple[float, list[int], bool]] = [(0.0, row, False)]
        for _ in range(length - len(row)):
            grown = []
            for total, tokens, ended in held:
                if ended:
                    grown.append((total, tokens, True))
                    continue
                logs = script(source, torch.tensor([tokens]))[0, -1].log_softmax(dim=-1)
                grown += [
                    (total + value, [*tokens, token], token == script.end)
                    for token, value in enumerate(logs.tolist())
                ]
            held = heapq.nlargest(beams, grown, key=lambda one: one[0])
        found.append(held)
    rows = [[tokens + [script.pad] * (length - len(tokens)) for _, tokens, _ in h] for h in found]
    totals = [[total for total, _, _ in held] for held in found]
    return torch.tensor(rows), torch.tensor(totals, dtype=scores.dtype)


class Penalised(Script):
    """A scripted model that carries the exponent of the length penalty."""

    def __init__(self, sizes: Sizes) -> None:
        """Keep the exponent."""
        super().__init__(sizes)
        self.alpha = sizes.alpha


def twice_as_many_candidates(
    script: Penalised, scores: Tensor, begin: Tensor, length: int, beams: int
) -> tuple[Tensor, Tensor]:
    """Search with 2 N candidates per step and a list of the N best that are finished.

    Copies of the first beam start with -1e9, the penalty is a power, and the search of a sequence
    ends when N of its hypotheses are finished: the design of the libraries in use.
    """
    batch, given = begin.shape
    memory = script.play(scores).memory(script.source).repeat_interleave(beams, dim=0)
    tokens = begin.repeat_interleave(beams, dim=0)
    totals = scores.new_full((batch, beams), -1e9, dtype=torch.float64)
    totals[:, 0] = 0.0
    finished: list[list[tuple[float, list[int]]]] = [[] for _ in range(batch)]
    closed = [False] * batch
    for place in range(given, length):
        logs = script.answer(tokens, memory)[:, -1].double().view(batch, beams, -1)
        count = logs.shape[-1]
        sums = (totals[..., None] + logs).view(batch, -1)
        best, where = sums.topk(2 * beams, dim=1)
        rows, kept = [], []
        for number in range(batch):
            going: list[tuple[float, int, int]] = []
            for rank, (value, at) in enumerate(
                zip(best[number].tolist(), where[number].tolist(), strict=True)
            ):
                row, token = number * beams + at // count, at % count
                if token != script.end:
                    going.append((value, row, token))
                elif rank < beams and not closed[number]:
                    power = (place + 1 - given) ** script.alpha
                    finished[number].append((value / power, [*tokens[row].tolist(), token]))
            closed[number] = closed[number] or len(finished[number]) >= beams
            rows += going[:beams]
            kept.append([value for value, _, _ in going[:beams]])
        totals = torch.tensor(kept, dtype=torch.float64)
        tokens = torch.cat(
            [tokens[[row for _, row, _ in rows]], torch.tensor([[one] for *_, one in rows])], dim=1
        )
    for number in range(batch):
        if not closed[number]:
            power = max(length - given, 1) ** script.alpha
            for beam in range(beams):
                row = tokens[number * beams + beam].tolist()
                finished[number].append((float(totals[number, beam]) / power, row))
        finished[number].sort(key=lambda one: -one[0])
    rows_of = [[row + [script.pad] * (length - len(row)) for _, row in one] for one in finished]
    values = [[value for value, _ in one[:beams]] for one in finished]
    return torch.tensor([one[:beams] for one in rows_of]), torch.tensor(values, dtype=scores.dtype)


def by_rank(sizes: Sizes) -> Any:
    """Return a sampler that filters by the ranks of tokens, before the temperature."""

    def probabilities(logits: Tensor) -> Tensor:
        whole = logits.softmax(dim=-1)
        ranks = (-whole).argsort(dim=-1, stable=True).argsort(dim=-1, stable=True)
        limit = sizes.top_k or logits.shape[-1]
        ordered = logits.sort(dim=-1, descending=True).values
        few = logits >= ordered[:, min(limit, logits.shape[-1]) - 1, None]
        mass = torch.where(few, whole, 0.0)
        mass = mass / mass.sum(dim=-1, keepdim=True)
        better = ranks[:, None, :] < ranks[:, :, None]
        before = (better * mass[:, None, :]).sum(dim=-1)
        kept = few & ((before < sizes.top_p) | (sizes.top_p >= 1) | (ranks == 0))
        if sizes.temperature == 0:
            return (ranks == 0).to(logits.dtype)
        heated = torch.where(kept, logits / sizes.temperature, -math.inf)
        return (heated - heated.logsumexp(dim=-1, keepdim=True)).exp()

    return probabilities


def by_logarithms(sizes: Sizes) -> Any:
    """Return a sampler that works on log-probabilities, and refuses a temperature of 0."""

    def probabilities(logits: Tensor) -> Tensor:
        if not sizes.temperature > 0:
            raise ValueError(f"A temperature of {sizes.temperature} is refused.")
        logs = (logits / sizes.temperature).log_softmax(dim=-1)
        ranked = logs.sort(dim=-1, descending=True).values
        if 0 < sizes.top_k < logs.shape[-1]:
            kept = logs >= ranked[:, sizes.top_k - 1, None]
        else:
            kept = torch.ones_like(logs, dtype=torch.bool)
        if sizes.top_p < 1:
            sums = ranked.exp().cumsum(dim=-1)
            number = (sums < sizes.top_p).sum(dim=-1, keepdim=True).clamp(max=logs.shape[-1] - 1)
            kept = kept & (logs >= ranked.gather(1, number))
        return logs.masked_fill(~kept, -math.inf).softmax(dim=-1)

    return probabilities


MEMBERS = (
    member(
        "shrinking-batch",
        "greedy decoding that takes ended sequences out of the batch",
        {"greedy_decoding": Recipe(build=Script, call=shrinking_batch)},
        {"output": "logits"},
    ),
    member(
        "one-by-one",
        "greedy decoding by recursion, one sequence after the other, filled up with end tokens",
        {"greedy_decoding": Recipe(build=Script, call=one_by_one)},
        {"after_end": "end"},
    ),
    member(
        "queue-of-hypotheses",
        "beam search with a heap and a call for each hypothesis, without a length penalty",
        {"beam_search": Recipe(build=Script, call=queue_of_hypotheses)},
        {"output": "logits", "length_penalty": "none"},
    ),
    member(
        "twice-as-many-candidates",
        "beam search with 2 N candidates per step and finished hypotheses in a list",
        {"beam_search": Recipe(build=Penalised, call=twice_as_many_candidates)},
        {
            "output": "log-probabilities",
            "length_penalty": "power",
            "finished_beams": "set-aside",
            "beam_stop": "n-finished",
        },
    ),
    member(
        "by-rank",
        "sampling with filters by rank, before the temperature",
        {"sampling": Recipe(build=by_rank)},
        {"filter_order": "filters-first"},
    ),
    member(
        "by-logarithms",
        "sampling on log-probabilities, with a nucleus of the whole vocabulary",
        {"sampling": Recipe(build=by_logarithms)},
        {"nucleus": "of-all"},
    ),
)
