"""Whole models in different published styles: how each is built, called and mapped is inferred."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status, Verdict
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.parameters import found
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Backend
from attentest_spec.torch import TorchBackend

WILD = SUPPORT / "wild_models"
FAILING = (Status.VIOLATION, Status.ERROR)

SOUND = [
    ("annotated.py:make_model", "generator maps them", "(B, 1, S)", "method decode", "(B, T, T)"),
    ("composed.py:Seq2SeqTransformer", "encoder=Encoder(input_dim=sizes.source_vocabulary"),
    ("torch_batch_first.py:TransformerModel", "tgt_pad_id=sizes.target_pad"),
    ("torch_sequence_first.py:Seq2SeqTransformer", "sequence first", "tgt_mask: True blocks"),
    ("packed.py:XTransformer", "src_key_mask: True may be attended; (B, S)", "is packed"),
    ("configured.py:TranslationTransformer", "TranslationConfig(vocab_size=", "(B, S)"),
    ("einsum.py:Seq2Seq", "norm_placement=pre", "d_mlp=sizes.d_ff"),
    ("pre_norm.py:PreNormTransformer", "method encode", "final_norm=present"),
    ("additive.py:Transformer", "look_ahead_mask: added to the scores", "dec_padding_mask"),
    ("flat.py:Transformer", "one row for every token", "embedding_norm=present"),
    ("blocking.py:TranslationModel", "dropped inside", "target_mask: True blocks"),
    ("numbered.py:NMTModel", "built as NMTModel(vocab_size=", "log-probabilities"),
    ("one_pad.py:Transformer", "seq_length=sizes.max_length", "output-alone"),
    ("plain_ids.py:Translator", "activation=gelu", "log-probabilities"),
    ("one_file.py:TransformerMT", "inner_size=sizes.d_ff", "method decode"),
    ("namespace.py:TransformerModel", "SimpleNamespace(pad=sizes.source_pad", "one pad id"),
    ("states.py:Transformer", "source=sources", "share_tables=False", "no generator is in it"),
    ("vectors.py:Transformer", "it takes vectors", "tgt_mask: True blocks"),
    ("sandwich.py:Network", "source=src, target=trg", "True blocks; (B, S)"),
    ("by_methods.py:build_transformer", "no call", "project maps", "method decode", "48 wide"),
    (
        "shared_table.py:TranslationModel",
        "i_pad=sizes.source_pad",
        "have one vocabulary",
        "4 times",
    ),
]
"""Sound models, read without an option, and what is said of how each was read."""

VALUES = [
    "formula",
    "shapes",
    "encode-decode-is-forward",
    "padding-in-a-batch",
    "pad-ids",
    "source-order-matters",
    "causality",
    "prefix-consistency",
    "embedding-norm",
    "tying",
    "parameter-count",
    "parameter-map-complete",
    "every-parameter-reached",
]
"""The clauses about numbers that are judged here: a mistake in a model breaks one of them."""

MISTAKES = [
    ("flat.py", "Transformer", "q / self.d_k**0.5", "q / self.d_k"),
    ("pre_norm.py", "PreNormTransformer", "[:, None, None, :] & past", "[:, None, None, :]"),
    ("plain_ids.py", "Translator", ".triu(1)", ".triu(2)"),
    ("sandwich.py", "Network", ".triu(diagonal=1)", ".triu(diagonal=0).roll(1, 1)"),
    ("einsum.py", "Seq2Seq", "self.ln_trg(y)", "self.ln_src(y)"),
    ("numbered.py", "NMTModel", "bhnm,bmhe->bnhe", "bhnm,bmhe->bhne"),
    ("sandwich.py", "Network", "norm_cross(x + y)", "norm_cross(y)"),
    ("composed.py", "Seq2SeqTransformer", "(trg) * self.scale", "(trg)"),
    ("packed.py", "XTransformer", "q, (k, v) = self", "q, (v, k) = self"),
    ("blocking.py", "TranslationModel", "memory, memory_hidden)", "memory, memory_hidden & False)"),
    ("additive.py", "Transformer", "self.pos_encoding(self.decoder", "(self.decoder"),
    ("numbered.py", "NMTModel", 'f"enc_{i}")(x', '"enc_0")(x'),
    ("one_pad.py", "Transformer", ".softmax(2)", ".softmax(1)"),
    ("namespace.py", "TransformerModel", "self.head_dim**-0.5", "self.head_dim**0.5"),
    ("configured.py", "TranslationTransformer", ", own, memory, bias)", ", own, memory, 0.0)"),
    ("states.py", "Transformer", "(ids != self.pad)", "(ids != 0)"),
    ("states.py", "Transformer", "norm(x + self.dropout(seen))", "norm(self.dropout(seen))"),
    ("vectors.py", "Transformer", "tgt_mask=tgt_mask,", ""),
    ("vectors.py", "Transformer", "src = layer(src,", "src = src + layer(src,"),
    ("by_methods.py", "build_transformer", "math.sqrt(q.size(-1))", "math.sqrt(key.size(-1))"),
    (
        "by_methods.py",
        "build_transformer",
        "transpose(1, 2).flatten(2)",
        "flatten(2).view_as(query)",
    ),
    (
        "by_methods.py",
        "build_transformer",
        "memory, memory, memory_mask",
        "memory, memory.flip(1), memory_mask",
    ),
    ("by_methods.py", "build_transformer", "(tgt) * math.sqrt", "(tgt) / math.sqrt"),
    ("shared_table.py", "TranslationModel", "[later, blank]", "[later, blank & False]"),
    ("shared_table.py", "TranslationModel", "steps > steps", "steps < steps"),
    ("shared_table.py", "TranslationModel", "d_head**-0.5", "d_hidn**-0.5"),
    ("shared_table.py", "TranslationModel", "norm(x + attention(", "norm(x + x + attention("),
]
"""A file, its model, and an edit that plants a mistake."""


def judged(backend: Backend, names: list[str]) -> Iterator[Verdict]:
    """Yield the verdict of each of the clauses `names` as it is asked for."""
    bench = Bench.for_status(backend, effort=0.3)
    return (judge(bench, f"model.{name}") for name in names)


def broken(backend: Backend, names: list[str]) -> dict[str, str]:
    """Return what fails of the clauses `names`, with the findings."""
    verdicts = list(judged(backend, names))
    assert sum(one.status.judged for one in verdicts) >= min(len(names), 11), verdicts
    return {one.clause: one.message for one in verdicts if one.status in FAILING}


pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


@share(24, rest=1)
@pytest.mark.parametrize(
    ("target", "said"),
    [(one, rest) for one, *rest in SOUND],
)
def test_sound_models_are_read_without_an_option_and_conform(target: str, said: list[str]) -> None:
    backend = attentest.adapted(str(WILD / target))
    read = "\n".join(backend.understood)
    for sentence in said:
        assert sentence in read, read
    assert not broken(backend, VALUES)


@pytest.mark.proof
@share(2, rest=1)
@pytest.mark.parametrize(
    ("src", "tgt"),
    [("src_pad", "tgt_pad"), ("source_padding", "target_padding")],
)
def test_masks_of_padding_by_other_names_are_masks(src: str, tgt: str, tmp_path: Path) -> None:
    """The names of ids of padding are those of masks where they are inputs of a call."""
    source = (WILD / "packed.py").read_text()
    for before, after in (("src_key_mask", src), ("tgt_key_mask", tgt)):
        assert before in source
        source = source.replace(before, after)
    (tmp_path / "packed.py").write_text(source)
    backend = attentest.adapted(f"{tmp_path / 'packed.py'}:XTransformer")
    read = "\n".join(backend.understood)
    assert f"{src}: True may be attended; (B, S)" in read, read
    assert not broken(backend, ["formula", "padding-in-a-batch"])


@pytest.mark.proof
def test_models_of_vectors_can_be_pickled_and_written() -> None:
    backend = attentest.adapted(str(WILD / "vectors.py:Transformer"))
    bench = Bench.for_status(backend, effort=0.1)
    assert judge(bench, "model.pickle").status is Status.PASS
    assert isinstance(backend, AdaptedWhole)
    space: dict[str, Any] = {}
    exec(backend.written(), space)
    assert space["backend"].components == ("model",)


@pytest.mark.proof
def test_a_scale_in_single_precision_is_no_mistake(tmp_path: Path) -> None:
    """A root that is a tensor of float32 differs by 1e-8 from that of float64."""
    source = (WILD / "composed.py").read_text()
    single = source.replace(
        "self.scale = hid_dim**0.5", "self.scale = torch.tensor(hid_dim).sqrt()"
    )
    assert single != source
    (tmp_path / "composed.py").write_text(single)
    backend = attentest.adapted(str(tmp_path / "composed.py:Seq2SeqTransformer"))
    assert "float64" not in backend.limits.precisions
    assert "assumed that it computes in float32" in "\n".join(backend.understood)
    assert not broken(backend, VALUES)


@pytest.mark.proof
@share(24)
@pytest.mark.parametrize(("file", "name", "old", "new"), MISTAKES)
def test_mistakes_in_models_are_detected(
    file: str, name: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "SECONDS", 0.7)  # no map gives numbers that are wrong
    source = (WILD / file).read_text()
    assert old in source
    (tmp_path / file).write_text(source.replace(old, new))
    backend = attentest.adapted(str(tmp_path / f"{file}:{name}"))
    clauses = ["formula", "pad-ids", "causality", "every-parameter-reached"]
    assert any(one.status in FAILING for one in judged(backend, clauses))  # the first is enough


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    ("edit", "fixed"),
    [
        ("self.drop = nn.Dropout(0.2)", True),
        ("self.drop = lambda x: x * (1.25 if self.training else 1.0)", False),
    ],
    ids=["fixed-rate", "scaled-in-training"],
)
def test_dropout_at_a_fixed_rate_is_random(edit: str, fixed: bool, tmp_path: Path) -> None:
    source = (WILD / "one_file.py").read_text()
    head, name, tail = source.rpartition("self.drop = nn.Dropout(dropout)")
    assert name
    (tmp_path / "one_file.py").write_text(head + edit + tail)
    backend = attentest.adapted(str(tmp_path / "one_file.py:TransformerMT"))
    assert isinstance(backend, TorchBackend)
    assert backend.limits.fixed_dropout is fixed

    assert fixed or broken(backend, ["training-without-dropout"])


QUESTIONS = [
    ("Transformer", "batch", "its one argument holds both source and target"),
    ("ForGeneration", "input_ids, decoder_input_ids", "relative positions of T5"),
]
"""The name and the arguments of a model that is not covered, and the reason of the question."""

UNCOVERED = """
from torch import nn


class {name}(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        if {relative}:
            self.bias = nn.Embedding(32, num_heads)
        self.layers = nn.ModuleList(nn.Linear(d_model, d_ff) for _ in range(4 * num_layers))

    def forward(self, {arguments}):
        return self.tokens
"""


@pytest.mark.parametrize(("name", "arguments", "reason"), QUESTIONS)
def test_models_outside_of_the_spec_are_asked_about(
    name: str, arguments: str, reason: str, tmp_path: Path
) -> None:
    text = UNCOVERED.format(name=name, arguments=arguments, relative="relative" in reason)
    (tmp_path / "uncovered_model.py").write_text(text)
    with pytest.raises(Unclear, match=reason):
        attentest.adapted(str(tmp_path / f"uncovered_model.py:{name}"))


@pytest.mark.proof
def test_output_of_a_wrong_model_is_still_read_as_logits(tmp_path: Path) -> None:
    source = (WILD / "one_pad.py").read_text(encoding="utf-8")
    path = tmp_path / "one_pad.py"
    path.write_text(source.replace(".softmax(2)", ".softmax(1)"), encoding="utf-8")
    assert attentest.adapted(f"{path}:Transformer").choices["output"] == "logits"


@pytest.mark.exhaustive
def test_one_trained_table_of_positions_for_both_sides_is_read_unless_strict(
    tmp_path: Path,
) -> None:
    source = (WILD / "one_pad.py").read_text()
    own = "self.target_pos_embedding = nn.Embedding(seq_length, emb)"
    assert own in source
    shared = source.replace(own, "self.target_pos_embedding = self.pos_embedding")
    (tmp_path / "shared.py").write_text(shared)
    target = str(tmp_path / "shared.py:Transformer")
    assert not broken(attentest.adapted(target), ["formula"])
    with pytest.raises(Unclear, match=r"one trained table of positions .* name the classes"):
        attentest.adapted(target, strict=True)


@pytest.mark.proof
def test_model_that_cannot_be_built_at_the_least_width_is_judged(
    tmp_path: Path,
) -> None:
    source = (WILD / "plain_ids.py").read_text()
    last = "rest = d_model, n_heads, d_ff, n_layers, max_len, dropout\n"
    assert last in source
    divided = source.replace(last, f"{last}        self.step = 4 / (d_model // 2 - 1)\n")
    (tmp_path / "narrow.py").write_text(divided)
    backend = attentest.adapted(str(tmp_path / "narrow.py:Translator"))
    assert backend.limits.least_width == 4
    assert judge(Bench.for_status(backend, effort=0.1), "model.formula").status is Status.PASS
