"""Greedy decoding in the styles of tutorials, and some of its mistakes."""

import torch

EOS_IDX = 3
DEVICE = "cpu"


def subsequent_mask(size):
    return torch.tril(torch.ones(1, size, size)) == 1


def one_sentence(model, src, src_mask, max_len, start_symbol):
    memory = model.encode(src, src_mask)
    ys = torch.zeros(1, 1).fill_(start_symbol).type_as(src.data)
    for _ in range(max_len - 1):
        out = model.decode(memory, src_mask, ys, subsequent_mask(ys.size(1)).type_as(src.data))
        prob = model.generator(out[:, -1])
        _, next_word = torch.max(prob, dim=1)
        next_word = next_word.data[0]
        ys = torch.cat([ys, torch.zeros(1, 1).type_as(src.data).fill_(next_word)], dim=1)
    return ys


def sequence_first(model, src, src_mask, max_len, start_symbol):
    src = src.to(DEVICE)
    src_mask = src_mask.to(DEVICE)
    memory = model.encode(src, src_mask)
    ys = torch.ones(1, 1).fill_(start_symbol).type(torch.long).to(DEVICE)
    for _ in range(max_len - 1):
        memory = memory.to(DEVICE)
        tgt_mask = torch.zeros(ys.size(0), ys.size(0)).type(torch.bool).to(DEVICE)
        out = model.decode(ys, memory, tgt_mask)
        out = out.transpose(0, 1)
        prob = model.generator(out[:, -1])
        _, next_word = torch.max(prob, dim=1)
        next_word = next_word.item()
        ys = torch.cat([ys, torch.ones(1, 1).type_as(src.data).fill_(next_word)], dim=0)
        if next_word == EOS_IDX:
            break
    return ys


@torch.no_grad()
def whole_batch(model, src, max_new_tokens, bos_id, eos_id, pad_id=0):
    model.eval()
    trg = torch.full((src.shape[0], 1), bos_id, dtype=torch.long, device=src.device)
    done = torch.zeros(src.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        logits = model(src, trg)
        nxt = logits[:, -1, :].argmax(-1)
        nxt = torch.where(done, torch.full_like(nxt, pad_id), nxt)
        trg = torch.cat([trg, nxt[:, None]], 1)
        done |= nxt == eos_id
        if done.all():
            break
    return trg


def list_of_ids(model, src, max_len, sos, eos, device):
    out = []
    mem = model.encode(src)
    y = torch.tensor([[sos]], device=device)
    while len(out) < max_len - 1:
        logit = model.decode(y, mem, model.make_src_mask(src))
        t = logit[0, -1].argmax().item()
        out.append(t)
        if t == eos:
            break
        y = torch.cat([y, torch.tensor([[t]])], dim=1)
    return out


def stops_at_three(model, src, max_len, start_symbol):
    ys = torch.full((1, 1), start_symbol)
    for _ in range(max_len - 1):
        n = model(src, ys)[:, -1].argmax(-1)
        ys = torch.cat([ys, n[:, None]], 1)
        if n.item() == 3:
            break
    return ys


def with_tokenizer(model, src, tokenizer, max_len, start_symbol):
    return src


def first_position(model, src, src_mask, max_len, start_symbol):
    memory = model.encode(src, src_mask)
    ys = torch.full((src.size(0), 1), start_symbol)
    for _ in range(max_len - 1):
        out = model.decode(memory, src_mask, ys, subsequent_mask(ys.size(1)))
        ys = torch.cat([ys, model.generator(out[:, 0]).argmax(-1, keepdim=True)], dim=1)
    return ys
