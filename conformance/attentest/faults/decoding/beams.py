"""Faults of beam search: how hypotheses are extended, ranked and returned."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Beam, Finished, Hooks, Node
from attentest_spec.torch import Script

LOGITS = {"output": "logits"}
ASIDE = {"finished_beams": "set-aside"}
EARLY = {"finished_beams": "set-aside", "beam_stop": "n-finished"}


@fault("decoding.beams-by-the-last-step", "beam-formula", seam="values_of")
def beams_by_the_last_step(
    self: Hooks, sums: Tensor, logs: Tensor, counts: Tensor, ends: Tensor, given: int
) -> Tensor:
    """Candidates are ranked by their last token alone. What they cost before is forgotten."""
    open_ones = torch.isfinite(sums)
    return torch.where(open_ones, sums - sums.amax(dim=-1, keepdim=True), -torch.inf)


@fault("decoding.beams-by-the-sum", "beam-formula", seam="values_of")
def beams_by_the_sum(
    self: Hooks, sums: Tensor, logs: Tensor, counts: Tensor, ends: Tensor, given: int
) -> Tensor:
    """The penalty is left out while searching. Long hypotheses are lost before they are scored."""
    return sums


@fault("decoding.best-token-of-each-beam", "beam-formula", seam="values_of")
def best_token_of_each_beam(
    self: Hooks, sums: Tensor, logs: Tensor, counts: Tensor, ends: Tensor, given: int
) -> Tensor:
    """Every beam keeps its own best token from the second step on. Beams do not compete."""
    values = self.correct.values_of(sums, logs, counts, ends, given)
    if not torch.isfinite(sums[:, 1:]).any():
        return values
    return values.masked_fill(values < values.amax(dim=-1, keepdim=True), -1e4)


@fault("decoding.single-beam-squeezed", "beam-shapes", seam="ranked")
def single_beam_squeezed(
    self: Hooks, found: Beam | list[list[Finished]], begin: Tensor, length: int, beams: int
) -> tuple[Tensor, Tensor]:
    """Axes of length 1 are squeezed away. A batch of one sentence has another shape."""
    tokens, scores = self.correct.ranked(found, begin, length, beams)
    return tokens.squeeze(), scores.squeeze()


@fault("decoding.scores-in-single-precision", "beam-shapes", seam="apply_penalty")
def scores_in_single_precision(self: Hooks, totals: Tensor, penalty: Tensor) -> Tensor:
    """Scores are computed in float32. Close hypotheses are exchanged."""
    return totals.float() / penalty.float()


@fault("decoding.end-never-first", "beam-one-is-greedy", seam="step_logs")
def end_never_first(self: Hooks, model: Script, tokens: Tensor, memory: Tensor) -> Tensor:
    """The end token is forbidden as the first new one. An empty sequence is never found."""
    logs = self.correct.step_logs(model, tokens, memory)
    if tokens.shape[2] == 1:
        logs = logs.clone()
        logs[..., self.sizes.end] = -torch.inf
    return logs


@fault("decoding.repeats-forbidden", "beam-one-is-greedy", seam="step_logs")
def repeats_forbidden(self: Hooks, model: Script, tokens: Tensor, memory: Tensor) -> Tensor:
    """A token that was written is never written again. The option is on by default."""
    logs = self.correct.step_logs(model, tokens, memory)
    words = tokens.masked_fill(tokens == self.sizes.end, self.sizes.target_pad)
    return logs.scatter(2, words, -1e3)


@fault("decoding.pruned-by-margin", "beam-optimum", seam="extend")
def pruned_by_margin(self: Hooks, totals: Tensor, logs: Tensor, ended: Tensor) -> Tensor:
    """A sequence far below the best is pruned, undeclared. The best sequence may begin there."""
    sums = self.correct.extend(totals, logs, ended)
    best = sums.flatten(1).amax(dim=1)[:, None, None]
    return sums.masked_fill(sums < best - 1.0, -1e5)


@fault("decoding.three-beams-at-most", "beam-optimum", seam="pick")
def three_beams_at_most(self: Hooks, values: Tensor, count: int) -> Tensor:
    """No more than three beams differ, whatever was asked for. A wide beam gains nothing."""
    picked = self.correct.pick(values, count)
    return picked[:, torch.arange(picked.shape[1]).clamp(max=2)]


@fault("decoding.beams-start-alike", "beam-distinct", seam="first_totals")
def beams_start_alike(self: Hooks, zeros: Tensor) -> Tensor:
    """All beams start with a sum of 0. They pick the same tokens and stay copies of one."""
    return zeros


@fault("decoding.best-candidate-repeated", "beam-wins", seam="pick")
def best_candidate_repeated(self: Hooks, values: Tensor, count: int) -> Tensor:
    """The best candidate takes all places of the beam. It finds what greedy decoding finds."""
    return self.correct.pick(values, count)[:, :1].expand(-1, count)


@fault("decoding.second-beam-is-the-third", "beam-wins", seam="pick")
def second_beam_is_the_third(self: Hooks, values: Tensor, count: int) -> Tensor:
    """The places after the first are one rank too low. The second best beginning is lost."""
    picked = self.correct.pick(values, min(count + 1, values.shape[1]))
    return torch.cat([picked[:, :1], picked[:, 2:]], dim=1)[:, :count] if count > 1 else picked


@fault("decoding.sums-not-reordered", "beam-scores", seam="sums_of")
def sums_not_reordered(self: Hooks, sums: Tensor, picked: Tensor) -> Tensor:
    """Sums stay in their place while tokens move. Hypotheses carry the score of another one."""
    vocabulary = sums.shape[2]
    beams = torch.arange(picked.shape[1], device=picked.device)
    return sums.flatten(1).gather(1, (beams * vocabulary + picked % vocabulary))


@fault("decoding.tokens-not-reordered", "beam-formula", seam="next_beam")
def tokens_not_reordered(self: Hooks, beam: Beam, logs: Tensor, given: int) -> Beam:
    """Tokens stay in their place while sums move. Beginnings and ends of hypotheses are mixed."""
    after = self.correct.next_beam(beam, logs, given)
    after.tokens = self.append(beam.tokens, after.tokens[..., -1])
    return after


@fault("decoding.score-of-the-last-step", "beam-scores", seam="ranked")
def score_of_the_last_step(
    self: Hooks, found: Beam | list[list[Finished]], begin: Tensor, length: int, beams: int
) -> tuple[Tensor, Tensor]:
    """The returned scores are not divided again, but their exponentials. They are no logarithms."""
    tokens, scores = self.correct.ranked(found, begin, length, beams)
    return tokens, scores.exp()


@fault("decoding.logits-added-up", "beam-probabilities", seam="logarithms", choices=LOGITS)
def logits_added_up(self: Hooks, following: Tensor) -> Tensor:
    """Logits are added up, not normalised. Steps with large logits decide everything."""
    return following


@fault("decoding.softmax-of-probabilities", "beam-probabilities", seam="logarithms")
def softmax_of_probabilities(self: Hooks, following: Tensor) -> Tensor:
    """Probabilities go through another softmax. All tokens are nearly as good as any other."""
    return torch.log_softmax(following, dim=-1)


@fault("decoding.probabilities-added-up", "beam-probabilities", seam="logarithms")
def probabilities_added_up(self: Hooks, following: Tensor) -> Tensor:
    """Probabilities are added up in place of their logarithms. Longer sequences always win."""
    return following


@fault("decoding.penalty-multiplied", "beam-length-penalty", seam="apply_penalty")
def penalty_multiplied(self: Hooks, totals: Tensor, penalty: Tensor) -> Tensor:
    """The sum is multiplied by the penalty. It punishes what it was made to help."""
    return totals * penalty


@fault("decoding.power-for-wu", "beam-length-penalty", seam="penalty")
def power_for_wu(self: Hooks, length: Tensor) -> Tensor:
    """The sum is divided by n^alpha, undeclared. The exponent of a paper fits another formula."""
    return length.clamp(min=1) ** self.sizes.alpha


@fault("decoding.penalty-left-out", "beam-length-penalty", seam="penalty", origin="M043")
def penalty_left_out(self: Hooks, length: Tensor) -> Tensor:
    """There is no penalty, and one was declared. Short translations win."""
    return torch.ones_like(length)


@fault("decoding.exponent-ignored", "beam-length-penalty", seam="penalty")
def exponent_ignored(self: Hooks, length: Tensor) -> Tensor:
    """The exponent is not applied. An exponent of 0 does not switch the penalty off."""
    return (5 + length) / 6


@fault("decoding.six-for-five", "beam-length-penalty", seam="penalty")
def six_for_five(self: Hooks, length: Tensor) -> Tensor:
    """The penalty is ((6 + n) / 6)^alpha. Scores differ from those of everyone else."""
    return ((6 + length) / 6) ** self.sizes.alpha


@fault("decoding.padding-counted", "beam-counted-length", seam="counted_tokens")
def padding_counted(self: Hooks, counts: Tensor, ended: Tensor, given: int) -> Tensor:
    """The greatest count of the batch is that of all. Padding is paid for like words."""
    return torch.full_like(counts, int(counts.max()))


@fault("decoding.given-tokens-counted", "beam-counted-length", seam="counted_tokens")
def given_tokens_counted(self: Hooks, counts: Tensor, ended: Tensor, given: int) -> Tensor:
    """The given tokens are counted, undeclared. The ranking depends on the start token."""
    return counts + given


@fault("decoding.end-not-counted", "beam-counted-length", seam="counted_tokens")
def end_not_counted(self: Hooks, counts: Tensor, ended: Tensor, given: int) -> Tensor:
    """The end token is not counted, undeclared. Finished hypotheses are one token cheaper."""
    return counts - ended.long()


@fault("decoding.worst-first", "beam-sorted", seam="order_of")
def worst_first(self: Hooks, scores: Tensor, totals: Tensor) -> Tensor:
    """The results are in ascending order. What is used first is the worst of the beam."""
    kept = scores.argsort(dim=1, descending=True)
    return kept.flip(1)


@fault("decoding.sorted-by-the-sum", "beam-sorted", seam="order_of")
def sorted_by_the_sum(self: Hooks, scores: Tensor, totals: Tensor) -> Tensor:
    """The results are sorted by their sums. The penalty decides nothing at the end."""
    return totals.argsort(dim=1, descending=True)


@fault("decoding.first-result-repeated", "beam-distinct", seam="order_of")
def first_result_repeated(self: Hooks, scores: Tensor, totals: Tensor) -> Tensor:
    """The best hypothesis is returned in all places. The list of the n best holds one."""
    return scores.argsort(dim=1, descending=True)[:, :1].expand_as(scores)


@fault("decoding.finished-extended", "beam-finished-keeps", seam="extend", origin="M043")
def finished_extended(self: Hooks, totals: Tensor, logs: Tensor, ended: Tensor) -> Tensor:
    """Finished hypotheses are extended like others. Words follow their end, and cost."""
    return totals[..., None] + logs


@fault("decoding.padding-costs", "beam-finished-keeps", seam="extend")
def padding_costs(self: Hooks, totals: Tensor, logs: Tensor, ended: Tensor) -> Tensor:
    """Padding after an end costs what the model says. Finished hypotheses lose to open ones."""
    sums = self.correct.extend(totals, logs, ended)
    cost = logs[..., self.fill_id()] * ended
    return sums + cost[..., None]


@fault("decoding.finished-dropped", "beam-finished-not-lost", seam="extend")
def finished_dropped(self: Hooks, totals: Tensor, logs: Tensor, ended: Tensor) -> Tensor:
    """Finished hypotheses leave the beam and are not kept. The best ones are lost."""
    sums = self.correct.extend(totals, logs, ended)
    return sums.masked_fill(ended[..., None], -1e4)


@fault("decoding.end-forbidden", "beam-finished-not-lost", seam="step_logs")
def end_forbidden(self: Hooks, model: Script, tokens: Tensor, memory: Tensor) -> Tensor:
    """The end token is only allowed from the fifth place on. Short sentences are padded out."""
    logs = self.correct.step_logs(model, tokens, memory)
    if tokens.shape[2] < 4:
        logs = logs.index_fill(2, torch.tensor([self.sizes.end]), -1e4)
    return logs


@fault("decoding.aside-undeclared", "beam-finished", seam="waits_in_beam")
def aside_undeclared(self: Hooks) -> bool:
    """Finished hypotheses wait aside, and the beam was declared. Other beginnings survive."""
    return False


@fault("decoding.in-beam-undeclared", "beam-finished", seam="waits_in_beam", choices=ASIDE)
def in_beam_undeclared(self: Hooks) -> bool:
    """Finished hypotheses stay in the beam, and a list was declared. They push open ones out."""
    return True


@fault("decoding.over-with-the-first", "beam-stop", seam="is_over")
def over_with_the_first(self: Hooks, ended: Tensor) -> bool:
    """The search is over when one hypothesis has ended. The others are cut."""
    return bool(ended.any())


@fault("decoding.closed-late", "beam-stop", seam="is_closed", choices=EARLY)
def closed_late(self: Hooks, finished: int, beams: int) -> bool:
    """The search goes on to the greatest length, and an early end was declared. It takes longer."""
    return False


@fault("decoding.closed-early", "beam-stop", seam="is_closed", choices=ASIDE)
def closed_early(self: Hooks, finished: int, beams: int) -> bool:
    """The search ends when as many are finished as the beam is wide. Longer ones are not found."""
    return finished >= beams


@fault("decoding.memory-tiled", "beam-batch-independence", seam="spread_memory")
def memory_tiled(self: Hooks, memory: Tensor, beams: int) -> Tensor:
    """The memory is repeated as a whole, not row by row. Beams read the source of another sentence.

    With one sentence, or one beam, nothing shows.
    """
    return memory.repeat(beams, 1, 1)


@fault("decoding.origin-without-offset", "beam-batch-independence", seam="reorder")
def origin_without_offset(self: Hooks, values: Tensor, origin: Tensor) -> Tensor:
    """Beams are reordered in the first sentence alone. Others get its hypotheses."""
    flat = values.flatten(0, 1)
    return flat.index_select(0, origin.flatten()).view(*origin.shape, *values.shape[2:])


@fault("decoding.over-with-one-sentence", "beam-batch-independence", seam="is_over")
def over_with_one_sentence(self: Hooks, ended: Tensor) -> bool:
    """The search is over when the beams of one sentence have ended. The others are cut."""
    return bool(ended.all(dim=1).any())


@fault("decoding.begin-in-the-first-beam", "beam-begin-stays", seam="first_tokens")
def begin_in_the_first_beam(self: Hooks, begin: Tensor, beams: int) -> Tensor:
    """Only the first sequence gets its given tokens. All others begin with those of the first."""
    return begin[:1, None].expand(len(begin), beams, -1)


@fault("decoding.beams-begin-with-start", "beam-begin-stays", seam="first_tokens")
def beams_begin_with_start(self: Hooks, begin: Tensor, beams: int) -> Tensor:
    """Beams begin with the start token, whatever is given. A language that is named is lost."""
    return torch.full_like(begin, self.sizes.start)[:, None].expand(-1, beams, -1)


@fault("decoding.beams-one-token-short", "beam-exact-length", seam="search_in_beam")
def beams_one_token_short(
    self: Hooks, model: Script, begin: Tensor, length: int, beams: int
) -> Beam:
    """The search is one step short. The last place is padding."""
    return self.correct.search_in_beam(model, begin, length - 1, beams)


@fault("decoding.first-sums-kept", "beam-no-memory-of-calls", seam="first_beam", kind="state")
def first_sums_kept(self: Hooks, begin: Tensor, beams: int, like: Tensor) -> Beam:
    """The first tokens are kept between calls. A second call starts from those of the first."""
    beam = self.correct.first_beam(begin, beams, like)
    kept = self.memory.setdefault("tokens", beam.tokens[:1, :1].clone())
    beam.tokens = beam.tokens.clone()
    if self.memory.setdefault("like", like) is not like:
        beam.tokens[:, :, -1:] = (kept[..., -1:] + 1) % self.sizes.target_vocabulary
    return beam


@fault("decoding.sums-masked-by-product", "beam-impossible-tokens", seam="extend")
def sums_masked_by_product(self: Hooks, totals: Tensor, logs: Tensor, ended: Tensor) -> Tensor:
    """Logarithms of finished hypotheses are multiplied by 0. Those of probability 0 are NaN."""
    sums = self.correct.extend(totals, logs, ended)
    return sums + (logs * 0.0)


@fault("decoding.impossible-clamped", "beam-impossible-tokens", seam="logarithms")
def impossible_clamped(self: Hooks, following: Tensor) -> Tensor:
    """Probabilities are at least 0.05 before their logarithm. Impossible tokens are written."""
    return following.clamp(min=0.05).log()


@fault("decoding.part-of-a-search", "beam-no-memory-of-calls", seam="beam_search", kind="state")
def part_of_a_search(
    self: Hooks, module: Node, scores: Tensor, begin: Tensor, length: int, beams: int
) -> tuple[Tensor, Tensor]:
    """The first call's scores are added to those of later calls. Every search depends on it."""
    tokens, values = self.correct.beam_search(module, scores, begin, length, beams)
    kept = self.memory.setdefault("first", float(values[0, 0]))
    again = self.memory.setdefault("calls", 0) > 0
    self.memory["calls"] = 1
    return tokens, values + kept * again
