"""Attention: loops over heads, logarithms, tensordot, and one softmax over slices."""

import torch
from torch import nn


def attention(q, k, v, mask=None):
    """Attend head by head. mask: True may be attended."""
    outputs = []
    for head in range(q.shape[1]):
        logit = q[:, head].bmm(k[:, head].transpose(1, 2))
        logit.div_(k.shape[-1] ** 0.5)
        if mask is not None:
            seen = mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])[:, head]
            logit = logit.masked_fill(~seen, -torch.inf)
        outputs.append(logit.softmax(2).bmm(v[:, head]))
    return torch.stack(outputs, dim=1)


def scaled_dot_product_attention(query, key, value, is_visible=None):
    """Normalise in logarithms. is_visible: True may be attended."""
    temperature = query.size(-1) ** 0.25
    agreement = (query / temperature) @ (key / temperature).transpose(-1, -2)
    if is_visible is not None:
        agreement = agreement.where(is_visible, agreement.new_tensor(-1e38))
    log_weights = agreement - agreement.logsumexp(dim=-1, keepdim=True)
    return log_weights.exp() @ value


class Attention(nn.Module):
    """The four steps as methods."""

    def compare(self, queries, keys):
        products = queries.unsqueeze(-2) * keys.unsqueeze(-3)
        return products.sum(-1) / keys.shape[-1] ** 0.5

    def hide(self, similarity, blocked):
        if blocked is None:
            return similarity
        return similarity.masked_fill(blocked, torch.finfo(similarity.dtype).min)

    def normalise(self, similarity):
        return torch.nn.functional.softmax(similarity, dim=-1)

    def collect(self, shares, values):
        return (shares.unsqueeze(-1) * values.unsqueeze(-3)).sum(-2)

    def forward(self, queries, keys, values, blocked=None):
        """Return the outputs. blocked: True at what must not be attended."""
        similarity = self.hide(self.compare(queries, keys), blocked)
        return self.collect(self.normalise(similarity), values)
