"""Losses in the styles of published code: correct ones, and one mistake in each of the rest."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class LabelSmoothing(nn.Module):
    """Smooth the target, and give the sum of the divergences of log-probabilities."""

    def __init__(self, size, padding_idx, smoothing=0.0):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.padding_idx = padding_idx
        self.confidence = 1.0 - smoothing
        self.smoothing = smoothing
        self.size = size

    def forward(self, x, target):
        assert x.size(1) == self.size
        dist = x.detach().clone()
        dist.fill_(self.smoothing / (self.size - 2))
        dist.scatter_(1, target.unsqueeze(1), self.confidence)
        dist[:, self.padding_idx] = 0
        mask = torch.nonzero(target == self.padding_idx)
        if mask.numel() > 0:
            dist.index_fill_(0, mask.squeeze(-1), 0.0)
        return self.criterion(x, dist)


class SimpleLossCompute:
    """Divide a sum by the number of tokens."""

    def __init__(self, pad_idx, vocab_size):
        self.criterion = LabelSmoothing(vocab_size, pad_idx, 0.1)

    def __call__(self, x, y, norm):
        return self.criterion(x.reshape(-1, x.size(-1)), y.reshape(-1)) / norm


def loss_function(pred, real):
    """Average over the tokens that are not 0."""
    losses = functional.cross_entropy(pred.transpose(1, 2), real, reduction="none")
    mask = (real != 0).to(losses.dtype)
    return (losses * mask).sum() / mask.sum()


def label_smoothed_nll_loss(lprobs, target, epsilon, ignore_index=None):
    """Give the sum with smoothing, and without."""
    if target.dim() == lprobs.dim() - 1:
        target = target.unsqueeze(-1)
    nll = -lprobs.gather(dim=-1, index=target)
    smooth = -lprobs.sum(dim=-1, keepdim=True)
    if ignore_index is not None:
        pads = target.eq(ignore_index)
        nll, smooth = nll.masked_fill(pads, 0.0), smooth.masked_fill(pads, 0.0)
    rate = epsilon / (lprobs.size(-1) - 1)
    loss = (1.0 - epsilon - rate) * nll.sum() + rate * smooth.sum()
    return loss, nll.sum()


class LabelSmoother:
    """Smooth over all classes, and leave out the labels -100."""

    def __init__(self, epsilon: float = 0.1):
        self.epsilon = epsilon

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        logs = -functional.log_softmax(logits, dim=-1)
        labels = labels.unsqueeze(-1)
        pads = labels.eq(-100)
        nll = logs.gather(dim=-1, index=labels.clamp(min=0)).masked_fill(pads, 0.0)
        smoothed = logs.sum(dim=-1, keepdim=True).masked_fill(pads, 0.0)
        kept = pads.numel() - pads.long().sum()
        smoothed = smoothed.sum() / (kept * logs.shape[-1])
        return (1 - self.epsilon) * nll.sum() / kept + self.epsilon * smoothed


def compute_loss(logits, targets):
    """Average over the targets that are not -1."""
    rows = logits.reshape(-1, logits.size(-1))
    return functional.cross_entropy(rows, targets.reshape(-1), ignore_index=-1)


def masked_loss(scores, labels, mask):
    """Average over the masked positions."""
    losses = -scores.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return (losses * mask).sum() / mask.sum()


def sentence_loss(probs, target, pad_id, eps=1e-12):
    """Average over sentences, from probabilities; eps is no label smoothing."""
    rows = torch.where(target == pad_id, 1.0, probs.gather(-1, target[..., None]).squeeze(-1))
    return -rows.log().sum(-1).mean()


def shifted_loss(logits, labels, ignore_index=-100):
    """Shift the labels inside, as a causal language model does."""
    rows, words = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    return functional.cross_entropy(rows, words, ignore_index=ignore_index)


def padded_loss(logits, target, pad_idx, label_smoothing):
    """Count the smoothing of padding (a mistake)."""
    losses = functional.cross_entropy(
        logits.flatten(0, 1), target.flatten(), reduction="none", label_smoothing=label_smoothing
    )
    keep = (target != pad_idx).flatten()
    hard = -logits.log_softmax(-1).flatten(0, 1).gather(1, target.flatten()[:, None])[:, 0]
    smooth = losses - (1 - label_smoothing) * hard
    return ((1 - label_smoothing) * hard * keep + smooth).sum() / keep.sum()


def mean_of_means_loss(logits, target, pad):
    """Average the means of sentences (a mistake in a loss by tokens)."""
    losses = functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
    keep = (target != pad).to(losses.dtype)
    return ((losses * keep).sum(1) / keep.sum(1).clamp(min=1)).mean()


def every_loss(logits, target):
    """Leave out nothing."""
    return functional.cross_entropy(logits.flatten(0, 1), target.flatten())
