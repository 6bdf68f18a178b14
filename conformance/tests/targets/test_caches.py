"""Caches of keys and values as people write them, judged inside a reference model."""

import pytest
import torch
from proof import share
from torch import nn

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.adaptation import adapt
from attentest.targets.adapt.training.in_files import component_in_file

CLAUSES = [f"cache.{one}" for one in ("formula", "chunks", "reset", "own-cache", "reorder")]


class KVCache:
    def __init__(self):
        self.k = self.v = None

    def update(self, k, v):
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=-2)
        return self.k, self.v


class DynamicCache:
    """One object for all layers, which can be reordered."""

    def __init__(self):
        self.key_cache, self.value_cache = [], []

    def update(self, key_states, value_states, layer_idx, cache_kwargs=None):
        if len(self.key_cache) <= layer_idx:
            self.key_cache.append(key_states)
            self.value_cache.append(value_states)
        else:
            held = self.key_cache[layer_idx], self.value_cache[layer_idx]
            self.key_cache[layer_idx] = torch.cat([held[0], key_states], dim=-2)
            self.value_cache[layer_idx] = torch.cat([held[1], value_states], dim=-2)
        return self.key_cache[layer_idx], self.value_cache[layer_idx]

    def reorder_cache(self, beam_idx):
        self.key_cache = [one.index_select(0, beam_idx) for one in self.key_cache]
        self.value_cache = [one.index_select(0, beam_idx) for one in self.value_cache]


class PreallocatedCache(nn.Module):
    """Tokens before heads, a buffer for all of them, and the place of the first new one."""

    def __init__(self, max_batch_size, max_seq_len, n_kv_heads, head_dim, dtype):
        super().__init__()
        shape = max_batch_size, max_seq_len, n_kv_heads, head_dim
        self.register_buffer("cache_k", torch.zeros(shape, dtype=dtype))
        self.register_buffer("cache_v", torch.zeros(shape, dtype=dtype))

    def update(self, start_pos, xk, xv):
        end = start_pos + xk.shape[1]
        self.cache_k[:, start_pos:end] = xk
        self.cache_v[:, start_pos:end] = xv
        return self.cache_k[:, :end], self.cache_v[:, :end]


class CountingCache:
    """A buffer that counts its tokens itself, with a reset."""

    def __init__(self, batch_size, num_heads, max_len, head_dim, dtype=torch.float32):
        self.keys = torch.zeros(batch_size, num_heads, max_len, head_dim, dtype=dtype)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def append(self, k_new, v_new):
        end = self.length + k_new.size(2)
        self.keys[:, :, self.length : end] = k_new
        self.values[:, :, self.length : end] = v_new
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def reset(self):
        self.length = 0


def wrong_clauses(thing):
    bench = Bench.for_status(adapt(thing), effort=0.2)
    return [slug for slug in CLAUSES if judge(bench, slug).status.fails]


@share(2)
@pytest.mark.parametrize("thing", [KVCache, DynamicCache, PreallocatedCache, CountingCache])
def test_sound_cache_conforms(thing):
    assert wrong_clauses(thing) == []


def test_reading_of_a_cache_is_said():
    said = adapt(PreallocatedCache).summary
    assert "update called (xk, xv) with keys (B, L, H, E), one object for each layer" in said
    assert "one object for all layers" in adapt(DynamicCache).summary


class NewestFirstCache(KVCache):
    def update(self, k, v):
        self.k = k if self.k is None else torch.cat([k, self.k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)
        return self.k, self.v


class KeysAsValuesCache(KVCache):
    def update(self, k, v):
        self.v = v if self.v is None else torch.cat([self.v, k], dim=2)
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        return self.k, self.v


class FirstLayerCache(DynamicCache):
    def update(self, key_states, value_states, layer_idx):
        found = super().update(key_states, value_states, layer_idx)
        return found if layer_idx == 0 else (found[0], self.value_cache[0])


class ReorderedKeysCache(DynamicCache):
    def reorder_cache(self, beam_idx):
        self.key_cache = [one.index_select(0, beam_idx) for one in self.key_cache]


class KeptLengthCache(CountingCache):
    def reset(self):
        self.keys.zero_()
        self.values.zero_()


class LateCache(PreallocatedCache):
    def update(self, start_pos, xk, xv):
        end = start_pos + xk.shape[1]
        self.cache_k[:, start_pos:end] = xk
        self.cache_v[:, start_pos:end] = xv if start_pos == 0 else xv.roll(1, 0)
        return self.cache_k[:, :end], self.cache_v[:, :end]


@pytest.mark.proof
@share(4)
@pytest.mark.parametrize(
    "thing",
    [
        NewestFirstCache,
        KeysAsValuesCache,
        FirstLayerCache,
        ReorderedKeysCache,
        LateCache,
        KeptLengthCache,
    ],
)
def test_wrong_cache_does_not_conform(thing):
    assert wrong_clauses(thing)


class Preallocated:
    def __init__(self, batch_size, n_heads, max_len, head_dim, dtype=torch.float32):
        self.k = torch.zeros(batch_size, n_heads, max_len, head_dim, dtype=dtype)
        self.v, self.pos = torch.zeros_like(self.k), 0

    def update(self, k, v):
        t = k.size(2)
        self.k[:, :, self.pos : self.pos + t] = k
        self.v[:, :, self.pos : self.pos + t] = v
        self.pos += t
        return self.k[:, :, : self.pos], self.v[:, :, : self.pos]


class OneAtATime(Preallocated):
    def update(self, k, v):
        super().update(k, v)
        self.pos += 1 - k.size(2)
        return self.k[:, :, : self.pos], self.v[:, :, : self.pos]


class Full(Preallocated):
    def update(self, k, v):
        super().update(k, v)
        return self.k, self.v


def test_cache_that_returns_fewer_tokens_than_it_is_given_is_a_component():
    assert component_in_file("KVCache", Preallocated) == "cached_decoding"
    assert component_in_file("KVCache", OneAtATime) == "cached_decoding"
    assert component_in_file("KVCache", Full) == ""
    with pytest.raises(Unclear, match="a recipe of three functions"):
        adapt(OneAtATime, name="KVCache")


def test_cache_that_returns_nothing_is_asked_about():
    class Cache:
        def update(self, k, v):
            self.k, self.v = k, v

    with pytest.raises(Unclear, match="a recipe of three functions"):
        adapt(Cache, name="Cache")
