"""Correct greedy decoding in the styles of published code."""

import torch

BOS, EOS = 1, 2


def greedy_end(model, src, src_mask, max_len, start_symbol, end_symbol):
    memory = model.encode(src, src_mask)
    ys = torch.full((src.size(0), 1), start_symbol, dtype=torch.long)
    done = torch.zeros(src.size(0), dtype=torch.bool)
    for _ in range(max_len - 1):
        out = model.decode(ys, memory, src_mask)
        nxt = model.generator(out[:, -1]).argmax(-1)
        nxt = nxt.masked_fill(done, end_symbol)
        ys = torch.cat([ys, nxt[:, None]], 1)
        done |= nxt == end_symbol
        if done.all():
            break
    return ys


def greedy_pad(model, src, max_len, sos_idx, eos_idx, pad_idx):
    model.eval()
    b = src.shape[0]
    out = torch.full((b, max_len), pad_idx, dtype=torch.long)
    out[:, 0] = sos_idx
    finished = torch.zeros(b, dtype=torch.bool)
    with torch.no_grad():
        for t in range(1, max_len):
            logits = model(src, out[:, :t])
            nxt = logits[:, t - 1].argmax(dim=-1)
            out[:, t] = torch.where(finished, torch.full_like(nxt, pad_idx), nxt)
            finished = finished | (nxt == eos_idx)
            if bool(finished.all()):
                break
    return out


def greedy_one(model, src, src_mask, max_len=10, start_symbol=BOS, end_symbol=EOS):
    """PyTorch tutorial, batch first, one sentence."""
    memory = model.encode(src, src_mask)
    ys = torch.ones(1, 1).fill_(start_symbol).type(torch.long)
    for _ in range(max_len - 1):
        out = model.decode(ys, memory)
        prob = model.generator(out[:, -1])
        next_word = prob.argmax(dim=1).item()
        ys = torch.cat([ys, torch.ones(1, 1).type_as(src.data).fill_(next_word)], dim=1)
        if next_word == end_symbol:
            break
    return ys


@torch.inference_mode()
def translate(model, src_tokens, max_new_tokens, bos_id, eos_id):
    """A list of lists, without the start, cut at the end token."""
    tokens = torch.full((len(src_tokens), 1), bos_id)
    mem = model.encode(src_tokens)
    for _ in range(max_new_tokens):
        logits = model.decode(tokens, mem)[:, -1, :]
        tokens = torch.cat((tokens, logits.argmax(-1, keepdim=True)), dim=-1)
        if ((tokens == eos_id).sum(1) > 0).all():
            break
    result = []
    for row in tokens.tolist():
        row = row[1:]
        result.append(row[: row.index(eos_id)] if eos_id in row else row)
    return result


def generate(model, src, bos, eos, max_length):
    ys = torch.full((src.size(0), 1), bos, dtype=torch.long, device=src.device)
    for _ in range(max_length - 1):
        logits = model(src, ys)
        ys = torch.cat([ys, logits[:, -1].topk(1).indices], dim=1)
        if (ys == eos).any(dim=1).all():
            break
    return ys


def batch_greedy(model, src, max_len, start, end):
    memory = model.encode(src)
    out = [[start] for _ in range(len(src))]
    for i in range(len(src)):
        while len(out[i]) < max_len and out[i][-1] != end:
            scores = model.decode(torch.tensor([out[i]]), memory[i : i + 1])
            out[i].append(int(scores[0, -1].argmax()))
    return out


class GreedyDecoder:
    """Built with the model and its ids."""

    def __init__(self, model, max_len, bos, eos, pad):
        self.model, self.max_len = model, max_len
        self.bos, self.eos, self.pad = bos, eos, pad

    def decode(self, src):
        ys = torch.full((src.size(0), 1), self.bos)
        memory = self.model.encode(src)
        done = torch.zeros(src.size(0), dtype=torch.bool)
        while ys.size(1) < self.max_len and not done.all():
            following = self.model.decode(ys, memory)[:, -1].argmax(-1)
            following[done] = self.pad
            ys = torch.cat([ys, following[:, None]], dim=1)
            done |= following == self.eos
        return ys


class Translator:
    """One sentence; its ids without those of the start and the end, as a list."""

    def __init__(self, model, sos, eos, max_length):
        self.model, self.sos, self.eos, self.max_length = model, sos, eos, max_length

    def translate(self, src):
        words = []
        for _ in range(self.max_length):
            step = self.model(src, torch.tensor([[self.sos, *words]]))[0, -1]
            word = int(step.argmax())
            if word == self.eos:
                break
            words.append(word)
        return words


def text_of(model, src, bos, eos, max_new_tokens):
    """One sentence; a tensor without the start, left at the end token."""
    out = torch.tensor([[bos]])
    for _ in range(max_new_tokens):
        word = model(src, out)[:, -1].argmax(-1, keepdim=True)
        if word.item() == eos:
            break
        out = torch.cat([out, word], dim=1)
    return out[0, 1:]
