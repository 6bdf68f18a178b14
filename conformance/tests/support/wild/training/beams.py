"""Correct beam searches in the styles of published code."""

import heapq

import torch
from torch.nn import functional

EOS = 2


def beam_search(model, src, src_mask, max_len, start_symbol, end_symbol, beam_size):
    """One sentence; finished hypotheses stay in the beam; the best one is returned."""
    memory = model.encode(src, src_mask)
    beams = [([start_symbol], 0.0)]
    for _ in range(max_len - 1):
        candidates = []
        for seq, score in beams:
            if len(seq) > 1 and seq[-1] == end_symbol:
                candidates.append((seq, score))
                continue
            ys = torch.tensor([seq])
            out = model.decode(memory, src_mask, ys, None)
            log_probs = functional.log_softmax(model.generator(out[:, -1]), dim=-1)[0]
            for token, value in enumerate(log_probs.tolist()):
                candidates.append(([*seq, token], score + value))
        beams = sorted(candidates, key=lambda one: one[1], reverse=True)[:beam_size]
        if all(seq[-1] == end_symbol for seq, _ in beams):
            break
    return torch.tensor(beams[0][0])


@torch.no_grad()
def beam_decode(model, src, beam_width=4, max_len=20, sos=1, eos=EOS, alpha=0.7):
    """One sentence; all hypotheses and their scores; the mean of logarithms where alpha is 1."""
    model.eval()
    memory = model.encode(src)
    live, done = [([sos], 0.0)], []
    for _ in range(max_len - 1):
        grown = []
        for tokens, total in live:
            logp = model.decode(torch.tensor([tokens]), memory)[0, -1].log_softmax(-1)
            top, ids = logp.topk(min(2 * beam_width, logp.numel()))
            grown += [
                ([*tokens, i], total + v) for v, i in zip(top.tolist(), ids.tolist(), strict=True)
            ]
        grown.sort(key=lambda one: -one[1])
        done += [one for one in grown[:beam_width] if one[0][-1] == eos]
        live = [one for one in grown if one[0][-1] != eos][:beam_width]
    ranked = [(tokens, total / (len(tokens) - 1) ** alpha) for tokens, total in done + live]
    return sorted(ranked, key=lambda one: one[1], reverse=True)[:beam_width]


def batch_beam_search(model, src, max_len, bos_idx, eos_idx, pad_idx, num_beams, length_penalty):
    """A whole batch at once; tokens (B, N, M) and scores (B, N)."""
    b, k = src.size(0), num_beams
    memory = model.encode(src).repeat_interleave(k, 0)
    seqs = torch.full((b * k, 1), bos_idx)
    total = torch.full((b, k), float("-inf"), dtype=memory.dtype)
    total[:, 0] = 0.0
    done = torch.zeros(b, k, dtype=torch.bool)
    lengths = torch.zeros(b, k)
    for _ in range(max_len - 1):
        logp = torch.log_softmax(model.decode(seqs, memory)[:, -1], dim=-1).view(b, k, -1)
        v = logp.size(-1)
        only_pad = torch.full((v,), float("-inf"), dtype=logp.dtype)
        only_pad[pad_idx] = 0.0
        logp = torch.where(done[..., None], only_pad, logp)
        grown = lengths + (~done)
        cand = total[..., None] + logp
        norm = ((5.0 + grown) / 6.0) ** length_penalty
        _, best = (cand / norm[..., None]).view(b, -1).topk(k)
        beam, token = best // v, best % v
        total = cand.view(b, -1).gather(1, best)
        lengths, done = grown.gather(1, beam), done.gather(1, beam) | (token == eos_idx)
        rows = (torch.arange(b)[:, None] * k + beam).view(-1)
        seqs = torch.cat([seqs[rows], token.view(-1, 1)], dim=1)
        if done.all():
            break
    scores = total / ((5.0 + lengths) / 6.0) ** length_penalty
    return seqs.view(b, k, -1), scores


class BeamSearch:
    """Stops as soon as as many hypotheses have ended as the beam is wide."""

    def __init__(self, model, beam_size, max_len, bos_id, eos_id):
        self.model = model
        self.beam_size = beam_size
        self.max_len = max_len
        self.bos_id, self.eos_id = bos_id, eos_id

    def search(self, src):
        memory = self.model.encode(src)
        seqs = torch.tensor([[self.bos_id]])
        scores = torch.zeros(1, dtype=memory.dtype)
        completed = []
        for _ in range(1, self.max_len):
            mem = memory.expand(seqs.size(0), -1, -1)
            logp = functional.log_softmax(self.model.decode(seqs, mem)[:, -1], dim=-1)
            flat = (scores[:, None] + logp).view(-1)
            order = flat.argsort(descending=True)
            rows, words, sums = [], [], []
            for seen, place in enumerate(order.tolist()):
                row, word = divmod(place, logp.size(1))
                if word == self.eos_id:
                    if seen < self.beam_size:
                        completed.append((flat[place].item(), [*seqs[row].tolist(), word]))
                elif len(rows) < self.beam_size:
                    rows.append(row)
                    words.append(word)
                    sums.append(flat[place])
            if len(completed) >= self.beam_size:
                break
            seqs = torch.cat([seqs[rows], torch.tensor(words)[:, None]], dim=1)
            scores = torch.stack(sums)
        else:
            completed += list(zip(scores.tolist(), seqs.tolist(), strict=True))
        return max(completed)[1]


class BeamTranslator:
    """Called like a function; returns lists for a batch, without the start and the end."""

    def __init__(self, transformer, k, sos_token, eos_token):
        self.transformer, self.k = transformer, k
        self.sos_token, self.eos_token = sos_token, eos_token

    def __call__(self, src, max_length):
        return [self._one(src[i : i + 1], max_length) for i in range(src.size(0))]

    def _one(self, src, max_length):
        memory = self.transformer.encode(src)
        beam = [(0.0, [self.sos_token], False)]
        for _ in range(max_length - 1):
            new = []
            for score, toks, end in beam:
                if end:
                    new.append((score, toks, True))
                    continue
                logits = self.transformer.decode(torch.tensor([toks]), memory)
                lp = logits[0, -1] - logits[0, -1].logsumexp(-1)
                for value, tok in zip(*lp.topk(self.k), strict=True):
                    t = tok.item()
                    new.append((score + value.item(), [*toks, t], t == self.eos_token))
            beam = heapq.nlargest(self.k, new, key=lambda one: one[0])
        _, toks, end = beam[0]
        return toks[1:-1] if end else toks[1:]


def beam_translate(model, src, src_mask, beam_size, max_len, bos, eos):
    """Adds up logarithms of probabilities, and divides by the length at the end alone."""
    memory = model.encode(src, src_mask)
    alive = [((bos,), 0.0)]
    finished = []
    while alive and len(alive[0][0]) < max_len:
        options = []
        for seq, score in alive:
            probs = model.generator(
                model.decode(memory, src_mask, torch.tensor([seq]), None)[:, -1]
            )
            logs = probs[0].log()
            options += [((*seq, i), score + logs[i].item()) for i in range(len(logs))]
        options.sort(key=lambda o: o[1], reverse=True)
        for seq, score in options[:beam_size]:
            if seq[-1] == eos:
                finished.append((seq, score))
        alive = [o for o in options if o[0][-1] != eos][:beam_size]
    finished += alive
    best = max(finished, key=lambda o: o[1] / (len(o[0]) - 1))
    return list(best[0])
