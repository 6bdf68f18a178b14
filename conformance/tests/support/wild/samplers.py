"""Samplers in the styles of repositories and gists, and a wrong twin of each."""

import torch
from torch.nn import functional


def top_k_top_p_filtering(logits, top_k=0, top_p=1.0, filter_value=-float("Inf")):
    top_k = min(top_k, logits.size(-1))
    if top_k > 0:
        hidden = logits < torch.topk(logits, top_k)[0][..., -1, None]
        logits[hidden] = filter_value
    if top_p < 1.0:
        ordered, order = torch.sort(logits, descending=True)
        sums = torch.cumsum(functional.softmax(ordered, dim=-1), dim=-1)
        remove = sums > top_p
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = False
        logits[remove.scatter(-1, order, remove)] = filter_value
    return logits


def top_k_top_p_filtering_not_shifted(logits, top_k=0, top_p=1.0, filter_value=-float("Inf")):
    if top_k > 0:
        logits[logits < torch.topk(logits, min(top_k, logits.size(-1)))[0][..., -1, None]] = (
            filter_value
        )
    if top_p < 1.0:
        ordered, order = torch.sort(logits, descending=True)
        remove = torch.cumsum(functional.softmax(ordered, dim=-1), dim=-1) > top_p
        remove[..., 0] = False
        logits[remove.scatter(-1, order, remove)] = filter_value
    return logits


def sample_top_p(logits, temperature, top_p):
    probs = torch.softmax(logits / temperature, dim=-1)
    ordered, index = torch.sort(probs, dim=-1, descending=True)
    before = torch.cumsum(ordered, dim=-1) - ordered
    ordered[before > top_p] = 0.0
    ordered.div_(ordered.sum(dim=-1, keepdim=True))
    probs = torch.zeros_like(probs).scatter(-1, index, ordered)
    return torch.multinomial(probs, num_samples=1)


def sample_top_p_multiplied(logits, temperature, top_p):
    return sample_top_p(logits * temperature * temperature, temperature, top_p)


@torch.no_grad()
def sample(logits, temperature=1.0, top_k=None):
    logits = logits / temperature
    if top_k is not None:
        v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        logits[logits < v[:, [-1]]] = -float("Inf")
    return torch.multinomial(functional.softmax(logits, dim=-1), num_samples=1)


def sample_best_of_batch(logits, temperature=1.0, top_k=None):
    logits = logits / temperature
    if top_k is not None:
        v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        logits[logits < v[0, -1]] = -float("Inf")
    return torch.multinomial(functional.softmax(logits, dim=-1), num_samples=1)


def sample_token(logits, temperature=1.0, top_k=-1, top_p=1.0, generator=None):
    """One row, (V,): an id."""
    if temperature == 0:
        return int(logits.argmax())
    logits = logits / temperature
    if top_k > 0:
        least = logits.sort(descending=True).values[min(top_k, len(logits)) - 1]
        logits = torch.where(logits < least, torch.tensor(float("-inf")).to(logits), logits)
    probs = logits.softmax(0)
    if top_p < 1:
        values, order = probs.sort(descending=True)
        count = int((values.cumsum(0) < top_p).sum()) + 1
        kept = torch.zeros_like(probs)
        kept[order[:count]] = values[:count]
        probs = kept / kept.sum()
    return torch.multinomial(probs, 1, generator=generator).item()


def sample_token_least(logits, temperature=1.0, top_k=-1, top_p=1.0, generator=None):
    if temperature == 0:
        return int(logits.argmax())
    return sample_token(logits, temperature, top_k, 1.0 - top_p if top_p < 1 else 1.0, generator)


def sample_with_temperature(scores, temp):
    dist = torch.distributions.Categorical(logits=scores / temp)
    return dist.sample()


def sample_with_temperature_ignored(scores, temp):
    return torch.distributions.Categorical(logits=scores).sample()


def logits_to_probs(logits, temperature: float = 1.0, top_k: int | None = None):
    logits = logits / max(temperature, 1e-5)
    if top_k is not None:
        pivot = torch.topk(logits, min(top_k, logits.size(-1)))[0].select(-1, -1).unsqueeze(-1)
        logits = torch.where(logits < pivot, -float("Inf"), logits)
    return torch.nn.functional.softmax(logits, dim=-1)


def logits_to_probs_without_pivot(logits, temperature: float = 1.0, top_k: int | None = None):
    logits = logits / max(temperature, 1e-5)
    if top_k is not None:
        pivot = torch.topk(logits, min(top_k, logits.size(-1)))[0].select(-1, -1).unsqueeze(-1)
        logits = torch.where(logits <= pivot, -float("Inf"), logits)
    return torch.nn.functional.softmax(logits, dim=-1)


def sample_from_sorted(logits, temperature=1.0, top_p=1.0):
    probs, order = torch.sort(torch.softmax(logits / temperature, dim=-1), descending=True)
    probs[torch.cumsum(probs, dim=-1) - probs >= top_p] = 0.0
    drawn = torch.multinomial(probs / probs.sum(dim=-1, keepdim=True), 1)
    return torch.gather(order, -1, drawn)


def sample_from_sorted_not_looked_up(logits, temperature=1.0, top_p=1.0):
    probs, _ = torch.sort(torch.softmax(logits / temperature, dim=-1), descending=True)
    probs[torch.cumsum(probs, dim=-1) - probs >= top_p] = 0.0
    return torch.multinomial(probs / probs.sum(dim=-1, keepdim=True), 1)


def top_k_sampling(logits, k, temperature=1.0):
    best, ids = torch.topk(logits / temperature, k)
    return ids.gather(-1, torch.multinomial(best.softmax(-1), 1))


def sample_min_p(logits, temperature=1.0, min_p=0.1):
    probs = torch.softmax(logits / temperature, dim=-1)
    probs[probs < min_p * probs.max(dim=-1, keepdim=True).values] = 0.0
    return torch.multinomial(probs / probs.sum(dim=-1, keepdim=True), 1)


def by_noise(logits, temperature=1.0):
    probs = torch.softmax(logits / temperature, dim=-1)
    return torch.argmax(probs / torch.empty_like(probs).exponential_(1), dim=-1, keepdim=True)


def with_tokenizer(logits, tokenizer, temperature=1.0):
    return tokenizer.decode(torch.multinomial(functional.softmax(logits / temperature, dim=-1), 1))
