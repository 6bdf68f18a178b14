"""Batches in the styles of published code: correct ones, and one mistake in each of the rest."""

import torch


def subsequent_mask(size):
    return torch.ones(1, size, size, dtype=torch.bool).tril()


class Batch:
    """Hold a batch with its masks, shifted for training."""

    def __init__(self, src, tgt, pad=2):
        self.src = src
        self.src_mask = (src != pad).unsqueeze(-2)
        self.tgt = tgt[:, :-1]
        self.tgt_y = tgt[:, 1:]
        self.tgt_mask = self.make_std_mask(self.tgt, pad)
        self.ntokens = (self.tgt_y != pad).data.sum()

    @staticmethod
    def make_std_mask(tgt, pad):
        return (tgt != pad).unsqueeze(-2) & subsequent_mask(tgt.size(-1))


def make_batch(src, trg, src_pad_idx, trg_pad_idx):
    """Return a dictionary, with masks that block where they are True."""
    trg_input, labels = trg[:, :-1], trg[:, 1:]
    later = torch.ones(trg_input.size(1), trg_input.size(1), dtype=torch.bool).triu(1)
    return {
        "trg_input": trg_input,
        "labels": labels,
        "src_mask": (src == src_pad_idx)[:, None, None, :],
        "trg_mask": (trg_input == trg_pad_idx)[:, None, None, :] | later,
        "n_tokens": int((labels != trg_pad_idx).sum()),
    }


class HidingBatch:
    """Masks that hide where they are True, with the names of `nn.Transformer`."""

    def __init__(self, src, tgt, pad_idx=0):
        self.src, self.tgt_in, self.tgt_out = src, tgt[:, :-1], tgt[:, 1:]
        self.src_key_padding_mask = src == pad_idx
        later = torch.ones(tgt.size(1) - 1, tgt.size(1) - 1, dtype=torch.bool).triu(1)
        self.tgt_mask = (self.tgt_in == pad_idx)[:, None, :] | later
        self.num_tokens = (self.tgt_out != pad_idx).sum().item()


class UnhidingBatch(HidingBatch):
    """Let the decoder attend to padding (a mistake)."""

    def __init__(self, src, tgt, pad_idx=0):
        super().__init__(src, tgt, pad_idx)
        later = torch.ones(tgt.size(1) - 1, tgt.size(1) - 1, dtype=torch.bool).triu(1)
        self.tgt_mask = later.expand(len(tgt), -1, -1)


class ZeroBatch(Batch):
    """Know one pad id, 0."""

    def __init__(self, src, tgt):
        super().__init__(src, tgt, 0)


class UnshiftedBatch(Batch):
    """Forget to shift what the decoder has to give (a mistake)."""

    def __init__(self, src, tgt, pad=2):
        super().__init__(src, tgt, pad)
        self.tgt_y = self.tgt


class CountingBatch(Batch):
    """Count the tokens that are read (a mistake)."""

    def __init__(self, src, tgt, pad=2):
        super().__init__(src, tgt, pad)
        self.ntokens = (self.tgt != pad).sum()


class BareBatch:
    """Have no masks."""

    def __init__(self, src, tgt):
        self.tgt, self.tgt_y = tgt[:, :-1], tgt[:, 1:]
