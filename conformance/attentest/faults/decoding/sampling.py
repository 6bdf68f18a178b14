"""Faults of the distribution that the next token is drawn from."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

FIRST = {"filter_order": "filters-first"}
ALL = {"nucleus": "of-all"}


@fault("decoding.temperature-multiplied", "sampling-temperature", seam="heat")
def temperature_multiplied(self: Hooks, logits: Tensor) -> Tensor:
    """The logits are multiplied by the temperature. A high one makes the model more certain."""
    return logits * self.temperature()


@fault("decoding.temperature-of-probabilities", "sampling-temperature", seam="heat")
def temperature_of_probabilities(self: Hooks, logits: Tensor) -> Tensor:
    """Probabilities are divided by the temperature, and go through a softmax again.

    The text is noise at every temperature.
    """
    return logits.softmax(dim=-1) / self.temperature() if self.temperature() != 1 else logits


@fault("decoding.temperature-ignored", "sampling-temperature", seam="temperature")
def temperature_ignored(self: Hooks) -> float:
    """The temperature is not used. The setting changes nothing."""
    return 1.0


@fault("decoding.temperature-with-a-floor", "sampling-cold", seam="temperature")
def temperature_with_a_floor(self: Hooks) -> float:
    """The temperature is 0.1 at least. A test with a low one is not repeatable."""
    return max(self.sizes.temperature, 0.1)


@fault("decoding.temperature-plus-epsilon", "sampling-cold", seam="temperature")
def temperature_plus_epsilon(self: Hooks) -> float:
    """0.02 is added to the temperature against a division by 0. Low temperatures are others."""
    return self.sizes.temperature + 0.02


@fault("decoding.zero-temperature-unguarded", "sampling-zero-temperature", seam="heat")
def zero_temperature_unguarded(self: Hooks, logits: Tensor) -> Tensor:
    """Logits are divided by a temperature of 0. All probabilities are NaN."""
    return logits / self.temperature()


@fault("decoding.zero-temperature-is-one", "sampling-zero-temperature", seam="temperature")
def zero_temperature_is_one(self: Hooks) -> float:
    """A temperature of 0 is taken for none. What was meant to be greedy is drawn."""
    return self.sizes.temperature or 1.0


@fault("decoding.one-more-than-k", "sampling-top-k", seam="count_kept")
def one_more_than_k(self: Hooks, vocabulary: int) -> int:
    """One token more than k is kept. The threshold is the next value."""
    return min(self.correct.count_kept(vocabulary) + 1, vocabulary)


@fault("decoding.one-less-than-k", "sampling-top-k", seam="count_kept")
def one_less_than_k(self: Hooks, vocabulary: int) -> int:
    """One token less than k is kept. The threshold is left out."""
    kept = self.correct.count_kept(vocabulary)
    return max(kept - 1, 1) if kept < vocabulary else kept


@fault("decoding.k-smallest", "sampling-top-k", seam="keep_top_k")
def k_smallest(self: Hooks, logits: Tensor, count: int) -> Tensor:
    """The k smallest logits are kept. The text is noise."""
    return -self.correct.keep_top_k(-logits, count).nan_to_num(neginf=torch.inf)


@fault("decoding.threshold-dropped", "sampling-top-k-ties", seam="keep_top_k")
def threshold_dropped(self: Hooks, logits: Tensor, count: int) -> Tensor:
    """Of tokens as good as the k-th none is kept. Sometimes one of k is left."""
    few = self.correct.keep_top_k(logits, count)
    least = few.masked_fill(few.isinf(), torch.inf).amin(dim=-1, keepdim=True)
    several = (logits == least).sum(dim=-1, keepdim=True) > 1
    return few.masked_fill(several & (logits == least), -torch.inf)


@fault("decoding.twice-as-many-of-equals", "sampling-top-k-ties", seam="keep_top_k")
def twice_as_many_of_equals(self: Hooks, logits: Tensor, count: int) -> Tensor:
    """Values are made unique before they are counted. Equal logits count as one token."""
    rows = [row.unique().flip(0) for row in logits]
    least = torch.stack([row[min(count, len(row)) - 1] for row in rows])
    return logits.masked_fill(logits < least[:, None], -torch.inf)


@fault("decoding.fifty-by-default", "sampling-unchanged", seam="count_kept")
def fifty_by_default(self: Hooks, vocabulary: int) -> int:
    """50 tokens are kept where no limit is set. Probabilities are not those of the model."""
    return min(self.sizes.top_k or 50, vocabulary)


@fault("decoding.nucleus-by-default", "sampling-unchanged", seam="share_kept")
def nucleus_by_default(self: Hooks) -> float:
    """A p of 0.95 is used where none is set. The tail of the model is never seen."""
    return min(self.sizes.top_p, 0.95)


@fault("decoding.crossing-token-lost", "sampling-top-p", seam="keep_top_p")
def crossing_token_lost(self: Hooks, logits: Tensor, whole: Tensor, share: float) -> Tensor:
    """The token at which the sum reaches p is left out. The rest sums to less than p."""
    ranked, order = whole.softmax(dim=-1).sort(dim=-1, descending=True)
    out = ranked.cumsum(dim=-1) > share if share < 1 else torch.zeros_like(ranked).bool()
    out[:, 0] = False
    return logits.masked_fill(torch.zeros_like(out).scatter(1, order, out), -torch.inf)


@fault("decoding.ascending-nucleus", "sampling-top-p", seam="keep_top_p")
def ascending_nucleus(self: Hooks, logits: Tensor, whole: Tensor, share: float) -> Tensor:
    """The sum begins with the least probable token. The tail is kept, and the best is lost."""
    ranked, order = whole.softmax(dim=-1).sort(dim=-1)
    out = ranked.cumsum(dim=-1) - ranked >= share
    return logits.masked_fill(torch.zeros_like(out).scatter(1, order, out), -torch.inf)


@fault("decoding.nucleus-one-too-many", "sampling-top-p", seam="keep_top_p")
def nucleus_one_too_many(self: Hooks, logits: Tensor, whole: Tensor, share: float) -> Tensor:
    """The shift that keeps the crossing token is made twice. One token too many is left."""
    ranked, order = whole.softmax(dim=-1).sort(dim=-1, descending=True)
    out = ranked.cumsum(dim=-1) - ranked >= share
    out[:, 1:] = out[:, :-1].clone()
    out[:, 0] = False
    return logits.masked_fill(torch.zeros_like(out).scatter(1, order, out), -torch.inf)


@fault("decoding.everything-filtered", "sampling-keeps-the-best", seam="keep_top_p")
def everything_filtered(self: Hooks, logits: Tensor, whole: Tensor, share: float) -> Tensor:
    """Nothing is kept when the best token alone exceeds p. All probabilities are NaN."""
    best = whole.softmax(dim=-1).amax(dim=-1, keepdim=True)
    return torch.where(best > share, -torch.inf, self.correct.keep_top_p(logits, whole, share))


@fault("decoding.two-tokens-at-least", "sampling-keeps-the-best", seam="keep_top_p")
def two_tokens_at_least(self: Hooks, logits: Tensor, whole: Tensor, share: float) -> Tensor:
    """Two tokens are kept at least, undeclared. No setting is greedy."""
    kept = self.correct.keep_top_p(logits, whole, share)
    two = self.correct.keep_top_k(whole, min(2, logits.shape[-1]))
    return torch.where(two.isfinite(), logits, kept)


@fault("decoding.finite-fill", "sampling-filtered-zero", seam="keep_top_k")
def finite_fill(self: Hooks, logits: Tensor, count: int) -> Tensor:
    """Filtered logits become -10. They are drawn once in a long text, or win among small ones."""
    few = self.correct.keep_top_k(logits, count)
    return few.masked_fill(few.isinf() & logits.isfinite(), -10.0)


@fault("decoding.rest-not-normalised", "sampling-normalised", seam="normalise_kept")
def rest_not_normalised(self: Hooks, logits: Tensor) -> Tensor:
    """The rest is not normalised again. The probabilities sum to less than 1."""
    return self.correct.normalise_kept(logits) * logits.isfinite().double().mean().to(logits.dtype)


@fault("decoding.normalised-over-the-batch", "sampling-normalised", seam="normalise_kept")
def normalised_over_the_batch(self: Hooks, logits: Tensor) -> Tensor:
    """The softmax is taken over the whole batch. Each row sums to a part of 1.

    With one sequence it is right.
    """
    return logits.flatten().softmax(dim=0).view_as(logits)


@fault("decoding.sigmoid-for-softmax", "sampling-formula", seam="normalise_kept")
def sigmoid_for_softmax(self: Hooks, logits: Tensor) -> Tensor:
    """Sigmoids are normalised in place of exponentials. Good tokens are hardly preferred."""
    odds = logits.sigmoid()
    return odds / odds.sum(dim=-1, keepdim=True)


@fault("decoding.filters-exclusive", "sampling-formula", seam="filter_out")
def filters_exclusive(self: Hooks, logits: Tensor) -> Tensor:
    """Top-p is ignored where top-k is given. One of two settings has no effect."""
    if self.sizes.top_k:
        return self.keep_top_k(logits, self.count_kept(logits.shape[-1]))
    return self.correct.filter_out(logits)


@fault("decoding.filters-first-undeclared", "sampling-order", seam="sampling")
def filters_first_undeclared(self: Hooks, module: Node, logits: Tensor) -> Tensor:
    """Filters see the logits before the temperature, undeclared. The nucleus is another one."""
    return self.normalise_kept(self.heat(self.filter_out(logits)))


@fault("decoding.temperature-first-undeclared", "sampling-order", seam="sampling", choices=FIRST)
def temperature_first_undeclared(self: Hooks, module: Node, logits: Tensor) -> Tensor:
    """The temperature comes before the filters, undeclared. The nucleus is another one."""
    return self.normalise_kept(self.filter_out(self.heat(logits)))


@fault("decoding.nucleus-of-all-undeclared", "sampling-nucleus", seam="whole")
def nucleus_of_all_undeclared(self: Hooks, few: Tensor, logits: Tensor) -> Tensor:
    """Top-p sums over the whole vocabulary, undeclared. Together with top-k it keeps more."""
    return logits


@fault("decoding.nucleus-of-the-rest-undeclared", "sampling-nucleus", seam="whole", choices=ALL)
def nucleus_of_the_rest_undeclared(self: Hooks, few: Tensor, logits: Tensor) -> Tensor:
    """Top-p sums over what top-k leaves, undeclared. Together they keep fewer tokens."""
    return few


@fault("decoding.threshold-of-the-first-row", "sampling-rows-apart", seam="keep_top_k")
def threshold_of_the_first_row(self: Hooks, logits: Tensor, count: int) -> Tensor:
    """The k-th logit of the first row is the threshold of all. A batch keeps other tokens."""
    least = logits[0].sort().values[-count]
    out = logits < least
    return logits.masked_fill(out & ~out.all(dim=-1, keepdim=True), -torch.inf)


@fault("decoding.sorted-over-the-batch", "sampling-rows-apart", seam="keep_top_k")
def sorted_over_the_batch(self: Hooks, logits: Tensor, count: int) -> Tensor:
    """The k best of the whole batch are kept, and the best of each row. Rows influence others."""
    least = logits.flatten().sort().values[-count]
    best = logits == logits.amax(dim=-1, keepdim=True)
    return logits.masked_fill((logits < least) & ~best, -torch.inf)


@fault("decoding.mask-in-sorted-order", "sampling-sorted-back", seam="keep_top_p")
def mask_in_sorted_order(self: Hooks, logits: Tensor, whole: Tensor, share: float) -> Tensor:
    """The mask is not put back into the order of the vocabulary. Low ids are kept."""
    ranked = whole.softmax(dim=-1).sort(dim=-1, descending=True).values
    out = ranked.cumsum(dim=-1) - ranked >= share
    return logits.masked_fill(out, -torch.inf)


@fault("decoding.returned-in-sorted-order", "sampling-sorted-back", seam="normalise_kept")
def returned_in_sorted_order(self: Hooks, logits: Tensor) -> Tensor:
    """Filtered probabilities are returned in sorted order. An index is taken for an id."""
    found = self.correct.normalise_kept(logits)
    return found.sort(dim=-1, descending=True).values if (found == 0).any() else found


@fault("decoding.softmax-overflows", "sampling-shift", seam="normalise_kept")
def softmax_overflows(self: Hooks, logits: Tensor) -> Tensor:
    """Exponentials are taken without subtracting the greatest logit. Large logits give NaN."""
    powers = logits.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@fault("decoding.absolute-threshold", "sampling-shift", seam="filter_out")
def absolute_threshold(self: Hooks, logits: Tensor) -> Tensor:
    """Logits below -20 are always filtered out. Models with small logits lose words."""
    best = logits == logits.amax(dim=-1, keepdim=True)
    few = logits.masked_fill((logits < -20.0) & ~best, -torch.inf)
    return self.correct.filter_out(few)


@fault("decoding.filtered-in-place", "sampling-input-untouched", seam="keep_top_k", choices=FIRST)
def filtered_in_place(self: Hooks, logits: Tensor, count: int) -> Tensor:
    """Minus infinity is written into the logits. Whoever reads them again finds nothing."""
    return logits.copy_(self.correct.keep_top_k(logits, count))


@fault("decoding.heated-in-place", "sampling-input-untouched", seam="heat")
def heated_in_place(self: Hooks, logits: Tensor) -> Tensor:
    """The logits are divided in place. The second call divides again."""
    return logits.copy_(self.correct.heat(logits))
