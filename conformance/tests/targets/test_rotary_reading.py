"""Rotary positions as people write them: read, judged, and their wrong twins reported."""

from pathlib import Path

import pytest
import torch
from proof import share
from torch import nn

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear
from attentest.targets.resolve import load

torch.set_num_threads(1)

FOLDER = Path(__file__).parent.parent / "support" / "wild_rotary"

SOUND = {
    "cached_halves": ("RotaryEmbedding", {"rotary_pairs": "halves"}),
    "position_ids": ("MyRotaryEmbedding", {"rotary_pairs": "halves", "rotary_base": 500_000.0}),
    "complex_pairs": ("precompute_freqs_cis", {"rotary_pairs": "adjacent"}),
    "direct_tokens_first": ("RotaryPositionalEmbeddings", {"rotary_pairs": "adjacent"}),
    "rotate_every_two": ("apply_rope", {"rotary_pairs": "adjacent"}),
    "quarter_of_the_head": ("NeoXRotary", {"rotary_pairs": "halves", "rotary_width": 0.25}),
    "course_scratch": ("apply_rope", {"rotary_pairs": "halves"}),
    "assignment": ("RotaryPositionalEmbedding", {"rotary_pairs": "adjacent"}),
    "minimal_training": ("Rotary", {"rotary_direction": "backward"}),
    "angles_of_positions": ("rope", {"rotary_pairs": "adjacent"}),
    "one_function": ("apply_rotary", {"rotary_pairs": "adjacent"}),
    "plain_object": ("RoPE", {"rotary_pairs": "halves", "rotary_base": 1e6}),
    "lru_cached": ("RotaryPositionEncoding", {"rotary_arithmetic": "as-computed"}),
    "growing_cache": ("RotaryEmbedding", {"rotary_pairs": "halves"}),
    "gathered_table": ("apply_rotary_emb", {"rotary_arithmetic": "as-computed"}),
    "heads_and_width": ("RotaryPositionalEncoding", {"rotary_pairs": "halves"}),
    "model_width": ("RotaryEncoding", {"rotary_pairs": "adjacent"}),
    "complex_table": ("RotaryTurns", {"rotary_pairs": "adjacent", "rotary_width": "whole"}),
}
"""The file, the name in it, and choices that the numbers show."""

WRONG = [
    ("cached_halves", "torch.cat((freqs, freqs), dim=-1)", "freqs.repeat_interleave(2, dim=-1)"),
    ("position_ids", "position_ids[:, :, None]", "position_ids[:1, :, None]"),
    ("complex_pairs", "[: (dim // 2)].float() / dim)", "[: (dim // 2)].float() / dim / 2)"),
    ("direct_tokens_first", "- xshaped[..., 1] *", "+ xshaped[..., 1] *"),
    ("rotate_every_two", "torch.stack((-x2, x1)", "torch.stack((x2, x1)"),
    ("quarter_of_the_head", ".double() / self.rotary_ndims))", ".double() / head_size))"),
    ("course_scratch", "torch.cat((-x2, x1)", "torch.cat((-x1, x2)"),
    ("assignment", "theta ** (2 * k / d_k)", "theta ** (k / d_k)"),
    ("minimal_training", "x1 * (-sin) + x2 * cos", "x1 * sin + x2 * cos"),
    ("angles_of_positions", "-torch.sin(out), torch.sin(out)", "torch.sin(out), torch.sin(out)"),
    ("one_function", "torch.arange(t,", "torch.arange(1, t + 1,"),
    ("plain_object", "self._turn(q, angle), self._turn(k, angle)", "self._turn(q, angle), k"),
    ("lru_cached", "t[offset:].to(x)", "t[: x.size(-2)].to(x)"),
    ("growing_cache", "if seq_len > self.seq_len_cached or key", "if key"),
    ("gathered_table", "theta**-exponent", "theta ** (-2 * exponent)"),
    ("heads_and_width", "x2 * cos + x1 * sin", "x2 * cos - x1 * sin"),
    ("model_width", ".double() / d_model)", ".double() / max_len)"),
    ("complex_table", "(torch.arange(half) / half)", "(torch.arange(half) / head_dim)"),
]
"""One mistake in each file."""

ASKED = {"one_function"}
"""Wrong twins that lead to a question: no first token is as it was."""

CLAUSES = ("formula", "norm-kept", "positions-given", "one-token", "longer-than-before", "shapes")


def statuses(backend):
    bench = Bench.for_status(backend, effort=0.3)
    return {clause: judge(bench, f"rotary.{clause}").status for clause in CLAUSES}


def read(file, name, folder=FOLDER, **reading):
    return load(f"{folder / file}.py:{name}", reading or None)


@share(4, rest=1)
@pytest.mark.parametrize("file", SOUND)
def test_sound_rotary_positions_conform_as_read(file):
    name, shown = SOUND[file]
    backend = read(file, name)
    assert shown.items() <= backend.choices.items()
    assert set(statuses(backend).values()) <= {"pass", "deviation", "absent"}
    assert any("rotary_pairs" in one for one in backend.assumed)


@share(4, rest=1)
@pytest.mark.parametrize(("file", "right", "wrong"), WRONG, ids=[one for one, *_ in WRONG])
def test_wrong_twin_is_reported(file, right, wrong, tmp_path):
    source = (FOLDER / f"{file}.py").read_text()
    assert source.count(right) == 1
    (tmp_path / f"wrong_{file}.py").write_text(source.replace(right, wrong))
    name = SOUND[file][0]
    if file in ASKED:
        with pytest.raises(Unclear, match="its first token is not as it was"):
            read(f"wrong_{file}", name, tmp_path)
        reading = {"anyway": True}
    else:
        reading = {}
    found = statuses(read(f"wrong_{file}", name, tmp_path, **reading))
    assert {"violation", "error"} & set(found.values()), found


def test_function_without_its_tables_is_asked_about(tmp_path):
    (tmp_path / "alone.py").write_text("def apply_rotary(x, cos, sin):\n    return x * cos\n")
    with pytest.raises(Unclear, match="its file has no function that belongs to it"):
        read("alone", "apply_rotary", tmp_path)


def test_argument_without_a_role_is_asked_about(tmp_path):
    code = "def apply_rope(x, wobble):\n    return x\n"
    (tmp_path / "odd.py").write_text(code)
    with pytest.raises(Unclear, match="argument 'wobble' of apply_rope"):
        read("odd", "apply_rope", tmp_path)


class TablesOnADevice(nn.Module):
    """Makes its tables on the device that it is built with."""

    def __init__(self, head_dim: int, device: torch.device) -> None:
        super().__init__()
        self.width, self.device = head_dim, device

    def forward(self, seq_len: int) -> torch.Tensor:
        device = self.device
        columns = torch.arange(0, self.width, 2, device=device, dtype=torch.float64)
        places = torch.arange(seq_len, device=device, dtype=torch.float64)
        return torch.outer(places, 10000 ** (-columns / self.width))


def test_a_device_that_must_be_given_is_asked_for():
    """A fixed one would be wrong where the input lies on another."""
    with pytest.raises(Unclear, match="--give device=cpu builds it on the CPU"):
        attentest.adapted(TablesOnADevice, "rotary")


LAYER = """import torch
from torch import nn


class RotaryEmbeddingLayer(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.register_buffer("inverse", base ** (-torch.arange(0, dim, 2).double() / dim))

    def forward(self, q, k):
        places = torch.arange(q.shape[-2], device=q.device).to(self.inverse)
        angles = torch.outer(places, self.inverse)
        cos, sin = torch.cos(angles).repeat(1, 2), torch.sin(angles).repeat(1, 2)
        return q * cos + self.half(q) * sin, k * cos + self.half(k) * sin

    @staticmethod
    def half(x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)


made = RotaryEmbeddingLayer(8, 5000)
"""


def test_a_name_with_further_words_is_rotary(tmp_path):
    (tmp_path / "layer.py").write_text(LAYER)
    backend = read("layer", "RotaryEmbeddingLayer", tmp_path)
    assert backend.choices["rotary_pairs"] == "halves"
    assert set(statuses(backend).values()) <= {"pass", "deviation", "absent"}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.half(k) * sin", "self.half(k) * cos"),
        ("torch.cat((-second, first)", "torch.cat((second, first)"),
    ],
)
def test_wrong_twin_of_a_name_with_further_words_is_not_absorbed(right, wrong, tmp_path):
    (tmp_path / "wrong.py").write_text(LAYER.replace(right, wrong))
    try:
        backend = read("wrong", "RotaryEmbeddingLayer", tmp_path)
    except Unclear:
        return
    assert {"violation", "error"} & set(statuses(backend).values())


def test_an_object_of_rotary_positions_is_asked_about(tmp_path):
    """Its class alone has another base."""
    (tmp_path / "layer.py").write_text(LAYER)
    with pytest.raises(Unclear, match="Give the class"):
        read("layer", "made", tmp_path)
