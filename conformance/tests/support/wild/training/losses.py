"""Correct losses in the styles of published code."""

import torch
from torch import nn
from torch.nn import functional

criterion = nn.CrossEntropyLoss(ignore_index=0)
smooth_criterion = nn.CrossEntropyLoss(ignore_index=1, label_smoothing=0.1, reduction="sum")


def cal_loss(pred, gold, trg_pad_idx, smoothing=False):
    pred = pred.reshape(-1, pred.shape[-1])
    gold = gold.contiguous().view(-1)
    if smoothing:
        eps = 0.1
        n_class = pred.size(1)
        one_hot = torch.zeros_like(pred).scatter(1, gold.view(-1, 1), 1)
        one_hot = one_hot * (1 - eps) + (1 - one_hot) * eps / (n_class - 1)
        log_prb = functional.log_softmax(pred, dim=1)
        keep = gold.ne(trg_pad_idx)
        return -(one_hot * log_prb).sum(dim=1).masked_select(keep).sum()
    return functional.cross_entropy(pred, gold, ignore_index=trg_pad_idx, reduction="sum")


def masked_loss(y_pred, y_true, pad=0):
    """TensorFlow tutorial's in torch."""
    loss = functional.cross_entropy(y_pred.transpose(1, 2), y_true, reduction="none")
    mask = (y_true != pad).to(loss.dtype)
    return (loss * mask).sum() / mask.sum()


class LabelSmoother:
    """Hfunctional."""

    def __init__(self, epsilon=0.1, ignore_index=-100):
        self.epsilon, self.ignore_index = epsilon, ignore_index

    def __call__(self, logits, labels):
        log_probs = -functional.log_softmax(logits, dim=-1)
        labels = labels.unsqueeze(-1)
        padding_mask = labels.eq(self.ignore_index)
        labels = torch.clamp(labels, min=0)
        nll = log_probs.gather(dim=-1, index=labels)
        smoothed = log_probs.sum(dim=-1, keepdim=True)
        nll = nll.masked_fill(padding_mask, 0.0)
        smoothed = smoothed.masked_fill(padding_mask, 0.0)
        n = padding_mask.numel() - padding_mask.long().sum()
        nll = nll.sum() / n
        smoothed = smoothed.sum() / (n * log_probs.shape[-1])
        return (1 - self.epsilon) * nll + self.epsilon * smoothed


def compute_loss(logits, labels, pad_token_id):
    logp = logits - torch.logsumexp(logits, -1, keepdim=True)
    picked = torch.take_along_dim(logp, labels[..., None], -1)[..., 0]
    keep = labels != pad_token_id
    return -torch.where(keep, picked, torch.zeros_like(picked)).sum() / keep.sum().clamp(min=1)


def sequence_loss(log_probs, targets, pad_idx, eps=0.1):
    """Loop over sentences, divided by sentences."""
    total = 0.0
    for lp, t in zip(log_probs, targets, strict=False):
        keep = t != pad_idx
        lp, t = lp[keep], t[keep]
        total = (
            total
            + (1 - eps) * functional.nll_loss(lp, t, reduction="sum")
            + eps * -lp.mean(-1).sum()
        )
    return total / len(targets)


class CELoss(nn.Module):
    def __init__(self, pad_index, label_smoothing=0.1, vocab_size=None):
        super().__init__()
        self.loss = nn.CrossEntropyLoss(ignore_index=pad_index, label_smoothing=label_smoothing)

    def forward(self, predictions, labels):
        return self.loss(predictions.permute(0, 2, 1), labels)


class XentLoss(nn.Module):
    """joeynmt's XentLoss."""

    def __init__(self, pad_index, smoothing=0.0):
        super().__init__()
        self.smoothing, self.pad_index = smoothing, pad_index
        self.criterion = (
            nn.KLDivLoss(reduction="sum")
            if smoothing > 0
            else nn.NLLLoss(ignore_index=pad_index, reduction="sum")
        )

    def _smooth(self, targets, vocab_size):
        d = torch.zeros(targets.size(0), vocab_size, dtype=torch.get_default_dtype())
        d.fill_(self.smoothing / (vocab_size - 2))
        d.scatter_(1, targets.unsqueeze(1), 1.0 - self.smoothing)
        d[:, self.pad_index] = 0
        d[targets == self.pad_index] = 0.0
        return d

    def forward(self, log_probs, target):
        flat = log_probs.contiguous().view(-1, log_probs.size(-1))
        t = target.contiguous().view(-1)
        if self.smoothing > 0:
            t = self._smooth(t, log_probs.size(-1)).to(flat.dtype)
        return self.criterion(flat, t)


def cross_entropy_loss(logits, target, mask):
    ce = -(functional.one_hot(target, logits.shape[-1]) * logits.log_softmax(-1)).sum(-1)
    return (ce * mask).sum() / mask.sum()


def loss_fn(outputs, labels):
    outputs = outputs.view(-1, outputs.shape[-1])
    labels = labels.view(-1)
    mask = (labels >= 0).to(outputs.dtype)
    logp = functional.log_softmax(outputs, dim=1)
    return -(logp[range(outputs.shape[0]), labels] * mask).sum() / mask.sum()


def lm_loss(logits, labels, pad_token_id):
    """Computed in float32, and returned so."""
    total = functional.cross_entropy(
        logits.float().flatten(0, 1), labels.flatten(), ignore_index=pad_token_id, reduction="sum"
    )
    return total / (labels != pad_token_id).sum()


class MaskedXent(nn.Module):
    """By logsumexp, with the mean logit as the smoothing over all words."""

    def __init__(self, pad_token_id=0, label_smoothing=0.0):
        super().__init__()
        self.pad, self.share = pad_token_id, label_smoothing

    def forward(self, logits, targets):
        whole = torch.logsumexp(logits, -1)
        picked = logits.gather(-1, targets[..., None]).squeeze(-1)
        each = whole - (1 - self.share) * picked - self.share * logits.mean(-1)
        counts = (targets != self.pad).to(each.dtype)
        return (each * counts).sum() / counts.sum().clamp_min(1.0)


def nll_from_probs(probs, y, pad_idx=0):
    chosen = probs.gather(2, y.unsqueeze(2)).squeeze(2)
    return -chosen[y.ne(pad_idx)].log().mean()
