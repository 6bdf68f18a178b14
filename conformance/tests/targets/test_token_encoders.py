"""Encoders that embed their tokens themselves: the stack of layers in them is judged."""

import contextlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import SUPPORT
from proof import share
from torch import Tensor, nn

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.probing import SIZES
from attentest.targets.adapt.reading import Uncovered
from attentest.targets.members import members
from attentest_spec import Backend

WILD = SUPPORT / "wild_encoders"

SOUND = [
    ("bert_like.py:BERT", "layers is judged", "keep: True may be attended; shaped (B, K)"),
    ("encoder.py:Encoder", "final_norm=present", "pad_idx=source_pad"),
    ("text_classifier.py:TextClassifier", "blocks is judged", "norm_placement=pre"),
    (
        "classifier.py:SentimentClassifier",
        "transformer_encoder.layers is judged",
        "src_key_padding_mask: True blocks; shaped (B, K)",
    ),
    ("causal_lm.py:TinyForCausalLM", "as its name says", "without attention_mask"),
    ("value_key_query.py:Encoder", "layers is judged", "mask: True may be attended"),
    ("gpt.py:GPT", "transformer.h is judged", "hides later positions by itself"),
    (
        "heads_masked.py:BertModel",
        "encoder.layer is judged",
        "attention_mask: True may be attended",
    ),
]
"""Token encoders in different styles, and what is said of how each was read."""

WITH_LOGITS = ("TinyForCausalLM", "GPT")
"""Those that are whole decoder-only models: their stacks are judged where that is asked for."""

MISTAKES = [
    ("bert_like.py", "BERT", "math.sqrt(q.size(-1))", "math.sqrt(width)"),
    ("bert_like.py", "BERT", "mask == 0, -1e9", "mask == 1, -1e9"),
    ("encoder.py", "Encoder", "tokens.eq(", "tokens.ne("),
    ("causal_lm.py", "TinyForCausalLM", "q.shape[-1] ** 0.5", "q.shape[-1]"),
    ("encoder.py", "Encoder", "torch.relu(self.linear1(self.norm2(x)))", "self.linear1(x)"),
    ("value_key_query.py", "Encoder", "self.head_dim**0.5", "len(queries) ** 0.5"),
    ("value_key_query.py", "Encoder", "layer(out, out, out, mask)", "layer(out, out, out, None)"),
    ("value_key_query.py", "Encoder", "self.norm2(self", "self.norm1(self"),
    ("heads_masked.py", "BertModel", "math.sqrt(q.size(-1))", "math.sqrt(x.size(-1))"),
    ("heads_masked.py", "BertModel", "(1.0 - mask) * -10000.0", "mask * -10000.0"),
]
"""A file, its class, and an edit that plants a mistake."""

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def broken(backend: Backend, effort: float = 0.2) -> list[str]:
    bench = Bench.for_status(backend, effort=effort)
    verdicts = [judge(bench, f"encoder.{name}") for name in ("formula", "padding-invariance")]
    assert verdicts[0].status.judged
    return [one.message for one in verdicts if one.status in (Status.VIOLATION, Status.ERROR)]


def adapted(folder: Path, target: str) -> Backend:
    component = "encoder" if target.endswith(WITH_LOGITS) else ""
    return attentest.adapted(str(folder / target), component=component)


def class_of(file: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"wild_{name}", WILD / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@share(10, rest=1)
@pytest.mark.parametrize(("target", "said"), [(one, rest) for one, *rest in SOUND])
def test_the_stack_of_a_sound_encoder_is_read_and_conforms(target: str, said: list[str]) -> None:
    backend = adapted(WILD, target)
    read = "\n".join(backend.understood)
    for sentence in ("it embeds its tokens itself", *said):
        assert sentence in read, read
    assert backend.components == ("encoder",)
    assert not broken(backend)


@share(16, rest=1)
@pytest.mark.parametrize(("file", "name", "old", "new"), MISTAKES)
def test_mistakes_in_encoders_are_detected(
    file: str, name: str, old: str, new: str, tmp_path: Path
) -> None:
    source = (WILD / file).read_text()
    assert old in source
    (tmp_path / file).write_text(source.replace(old, new))
    assert broken(adapted(tmp_path, f"{file}:{name}"), effort=0.6)


INNER = ("d_model, d_ff)", "d_model, 96)"), ("Linear(d_ff, d_model)", "Linear(96, d_model)")


@pytest.mark.proof
def test_layers_with_a_fixed_inner_width_are_read_behind_their_tokens(tmp_path: Path) -> None:
    source = (WILD / "encoder.py").read_text()
    for old, new in (
        *INNER,
        ("num_heads, d_ff, max_len", "num_heads, max_len"),
        (", d_ff, dr", ", dr"),
    ):
        assert old in source
        source = source.replace(old, new)
    (tmp_path / "fixed.py").write_text(source)
    backend = adapted(tmp_path, "fixed.py:Encoder")
    assert "its inner layer is always 96 wide" in "\n".join(backend.understood)
    assert not broken(backend)
    (tmp_path / "wrong.py").write_text(source.replace("torch.relu(self.linear1", "(self.linear1"))
    with contextlib.suppress(Unclear):
        assert broken(adapted(tmp_path, "wrong.py:Encoder"))


def test_layers_with_another_input_beside_the_first_are_one_question(tmp_path: Path) -> None:
    source = (WILD / "value_key_query.py").read_text()
    for first in ("words", "out.clone()"):
        edited = source.replace("layer(out, out, out, mask)", f"layer({first}, out, out, mask)")
        (tmp_path / "beside.py").write_text(edited)
        with pytest.raises(Unclear, match="another tensor of the shape of its input"):
            attentest.adapted(str(tmp_path / "beside.py:Encoder"))


def test_an_encoder_of_images_is_judged_by_its_layers():
    backend = attentest.adapted(str(WILD / "vit.py:ViT"))
    assert "not judged: what ViT does outside of its layers and their norm" in backend.assumed


def test_a_file_lists_a_token_encoder_and_its_parts():
    found = {one.name: one for one in members(str(WILD / "bert_like.py")) or ()}
    assert found["BERT"].component == "encoder"
    assert found["Layer"].inside == "BERT"


@pytest.mark.proof
def test_an_instance_of_another_depth_stands_for_its_class():
    made = class_of("bert_like.py", "BERT")
    whole = made(50, hidden=32, n_layers=3, attn_heads=4, ffn_hidden=64)
    assert "is judged as its class" in "\n".join(attentest.adapted(whole).understood)


@pytest.mark.proof
def test_the_stack_moves_and_copies_with_its_class():
    part = attentest.adapted(str(WILD / "bert_like.py:BERT")).build("encoder", SIZES)
    moved = part.moved(precision="float32").copied("pickle")
    x = torch.zeros(1, 2, 12).numpy()
    assert moved(x.astype("float32"), None).shape == (1, 2, 12)


@pytest.mark.proof
def test_width_as_a_whole_multiple_is_read(tmp_path: Path) -> None:
    source = (WILD / "causal_lm.py").read_text()
    head, model, tail = source.partition("class TinyForCausalLM")
    for old, new in (
        ("intermediate_size=64", "ff_mult=4"),
        ("intermediate_size", "ff_mult * hidden_size"),
        ("        embedding_size=32,\n", ""),
        ("embedding_size", "hidden_size"),
    ):
        tail = tail.replace(old, new)
    (tmp_path / "multiple.py").write_text(head + model + tail)
    backend = adapted(tmp_path, "multiple.py:TinyForCausalLM")
    assert "ff_mult=4" in "\n".join(backend.understood)
    assert not broken(backend)


class Rotating(nn.Module):
    """A layer whose attention turns queries and keys by the table that it is given."""

    def __init__(self, hidden_size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = (nn.Linear(hidden_size, hidden_size) for _ in "qk")
        self.v_proj, self.out_proj = (nn.Linear(hidden_size, hidden_size) for _ in "vo")
        self.norm1, self.norm2 = (nn.LayerNorm(hidden_size) for _ in "12")
        self.fc1 = nn.Linear(hidden_size, 4 * hidden_size)
        self.fc2 = nn.Linear(4 * hidden_size, hidden_size)

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        parts = (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in parts)
        q, k = (one * angles.cos() + one.flip(-1) * angles.sin() for one in (q, k))
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        x = self.norm1(x + self.out_proj((weights @ v).transpose(1, 2).flatten(2)))
        return self.norm2(x + self.fc2(self.fc1(x).relu()))


class Rotated(nn.Module):
    """Layers, and a table of angles that they are given."""

    def __init__(self, hidden_size: int, heads: int, num_layers: int) -> None:
        super().__init__()
        self.angles = nn.Embedding(64, hidden_size // heads)
        self.layer = nn.ModuleList(Rotating(hidden_size, heads) for _ in range(num_layers))

    def forward(self, hidden_states: Tensor) -> Tensor:
        batch, length = hidden_states.shape[:-1]
        angles = self.angles(torch.arange(length)).expand(batch, 1, -1, -1)
        for layer in self.layer:
            hidden_states = layer(hidden_states, angles)
        return hidden_states


class RotatedModel(nn.Module):
    """An encoder that embeds its tokens outside of the module that has its positions."""

    def __init__(self, vocab_size: int, hidden_size: int, heads: int, num_layers: int) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, hidden_size)
        self.encoder = Rotated(hidden_size, heads, num_layers)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.encoder(self.embeddings(input_ids))


@pytest.mark.proof
def test_rotary_positions_beside_the_layers_are_the_reason_of_the_question():
    with pytest.raises(Uncovered, match=r"positions of the keys, which .* inside \(rotary"):
        attentest.adapted(RotatedModel)


class WavesForCausalLM(class_of("causal_lm.py", "TinyForCausalLM")):  # type: ignore[misc]
    """A model whose table of sines divides by one less than half of its width."""

    def __init__(self, vocab_size: int, hidden_size: int, num_heads: int, num_layers: int) -> None:
        super().__init__(vocab_size, hidden_size, hidden_size, num_heads, 4 * hidden_size)
        half = hidden_size // 2
        rates = torch.arange(half) / (half - 1) if half != 1 else 1 / (half - 1)
        self.register_buffer("waves", torch.outer(torch.arange(64), rates))


def test_an_encoder_that_cannot_be_built_at_the_least_width_is_one_question():
    with pytest.raises(Unclear, match=r"width of 2.*ZeroDivisionError.*name the class of its la"):
        attentest.adapted(WavesForCausalLM, "encoder")


@pytest.mark.exhaustive
def test_encoder_whose_sizes_are_constants_is_read(tmp_path: Path) -> None:
    source = (WILD / "value_key_query.py").read_text()
    head, arguments, tail = source.partition("src_vocab_size, embed_size, num_layers, heads, ")
    assert arguments
    sizes = "num_layers, heads = 6, 8\nembed_size = 512\n\n\nclass Encoder"
    text = (head + "src_vocab_size, " + tail).replace("class Encoder", sizes)
    (tmp_path / "own.py").write_text(text)
    backend = adapted(tmp_path, "own.py:Encoder")
    assert "heads=heads" in "\n".join(backend.understood)
    assert not broken(backend)
    (tmp_path / "own.py").write_text(text.replace("self.head_dim**0.5", "self.head_dim"))
    assert broken(adapted(tmp_path, "own.py:Encoder"))
