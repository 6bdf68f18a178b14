"""Construction of whole models: fields that nothing says, and methods that build the model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.parameters import found
from attentest.targets.adapt.reading import Reading
from attentest.targets.models.building import building
from attentest.targets.resolve import module_of
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Backend

SOURCE = (SUPPORT / "wild_models" / "namespace.py").read_text(encoding="utf-8")
LAST = "        self.dropout = args.dropout\n\n    def embed"


def adapted(folder: Path, *edits: tuple[str, str], **reading: object) -> Backend:
    """Return the model of the namespace with `edits`, as a backend."""
    source = SOURCE
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    path = folder / "namespace.py"
    path.write_text(source, encoding="utf-8")
    return attentest.adapted(f"{path}:TransformerModel", **reading)


def status(backend: Backend, clause: str) -> Status:
    """Return the status of one clause of whole models."""
    bench = Bench(backend, shrink=False, diagnose=False, effort=0.2)
    return judge(bench, f"model.{clause}").status


def understood(backend: Backend) -> str:
    """Return what is said of how the model was read."""
    assert isinstance(backend, AdaptedWhole)
    return "\n".join(backend.understood)


def with_switch(condition: str) -> tuple[str, str]:
    """Return the edit that ties the generator to the target's table under `condition`."""
    tied = "self.output_projection.weight = self.decoder_embed_tokens.weight"
    return LAST, f"        if {condition}:\n            {tied}\n{LAST}"


@pytest.mark.proof
def test_switch_that_nothing_says_is_off_and_an_assumption(tmp_path: Path) -> None:
    backend = adapted(tmp_path, with_switch("args.tie_weights"))
    assert isinstance(backend, AdaptedWhole)
    assert "assumed tie_weights=False" in "\n".join(backend.assumed)
    assert backend.choices["tying"] == "none"
    assert status(backend, "formula") is Status.PASS


@pytest.mark.proof
def test_mistake_behind_a_switch_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "SECONDS", 0.7)  # no map gives numbers that are wrong
    backend = adapted(tmp_path, with_switch("args.tie_weights"), ("head_dim**-0.5", "head_dim**-1"))
    assert status(backend, "formula") is Status.VIOLATION


@pytest.mark.proof
def test_groups_of_fields_are_read(tmp_path: Path) -> None:
    backend = adapted(tmp_path, ("args.", "args.net."))
    assert "net=SimpleNamespace(" in understood(backend)
    assert status(backend, "formula") is Status.PASS


@pytest.mark.proof
def test_object_of_a_parser_has_the_fields_that_are_read(tmp_path: Path) -> None:
    imported = ("import torch\n", "import torch\nfrom argparse import Namespace\n")
    switch = (LAST, f"        if True == args.normalize_output:\n            pass\n{LAST}")
    backend = adapted(tmp_path, imported, ("(self, args", "(self, args: Namespace"), switch)
    assert "normalize_output=False" in understood(backend)
    assert status(backend, "formula") is Status.PASS


OF_A_TABLE = """

class Config:
    def __init__(self, config_dict):
        for name, value in config_dict.items():
            setattr(self, name, int(value))
"""
SPECIAL = (LAST, f"        self.ids = args.sos_idx, args.eos_idx\n{LAST}")


@pytest.mark.proof
def test_settings_made_of_a_table_are_replaced_by_the_fields_that_are_read(tmp_path: Path) -> None:
    made = ("from torch.nn import functional\n", f"from torch.nn import functional\n{OF_A_TABLE}")
    backend = adapted(tmp_path, made, ("(self, args", "(self, args: Config"), SPECIAL)
    assert "sos_idx=-1, eos_idx=-1" in understood(backend)
    assert status(backend, "formula") is Status.PASS


def test_an_activation_of_settings_is_a_name(tmp_path: Path) -> None:
    backend = adapted(
        tmp_path,
        (LAST, f"        self.activation = getattr(functional, args.hidden_act)\n{LAST}"),
    )
    assert "hidden_act='relu'" in understood(backend)


def test_number_that_nothing_says_is_asked_for(tmp_path: Path) -> None:
    scale = ("math.sqrt(args.encoder_embed_dim)", "args.embed_factor")
    with pytest.raises(Unclear, match="has no attribute 'embed_factor'"):
        adapted(tmp_path, scale)


@pytest.mark.proof
def test_width_of_a_head_that_the_adapter_computes_is_no_mistake(tmp_path: Path) -> None:
    given = (LAST, f"        self.d_k = args.d_k\n{LAST}")
    backend = adapted(tmp_path, given)
    assert "d_k=sizes.d_model // sizes.heads" in understood(backend)
    assert status(backend, "indivisible-width-refused") is Status.ABSENT


def test_one_norm_for_all_sublayers_of_a_layer_is_one_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "SECONDS", 0.7)  # no map gives numbers that are wrong
    last, cross = "self.final_layer_norm", "self.encoder_attn_layer_norm"
    made = [(f"        {one} = nn.LayerNorm(d)\n", "") for one in (last, cross)]
    used = [(f"{one}(", "self.self_attn_layer_norm(") for one in (last, cross)]
    with pytest.raises(Unclear, match="one norm for all sublayers of a layer"):
        adapted(tmp_path, *made, *used, strict=True)


def test_one_norm_by_several_names_is_one_question(tmp_path: Path) -> None:
    own, last = "self.self_attn_layer_norm", "self.final_layer_norm"
    with pytest.raises(Unclear, match="one norm for all sublayers of a layer"):
        adapted(tmp_path, (f"{last} = nn.LayerNorm(d)", f"{last} = {own}"))


PARTS = "encoder, decoder, src_embed, tgt_embed, generator"
OWN = """
    @classmethod
    def from_sizes(cls, src_vocab, tgt_vocab, n=6, d_model=512, d_ff=2048, h=8, dropout=0.1):
        return make_model(src_vocab, tgt_vocab, n, d_model, d_ff, h, dropout)

    def forward(self, src, tgt"""


def of_parts(folder: Path, method: str) -> Callable[..., Any]:
    """Return a class of models that takes its annotated parts, with `method` of its own."""
    source = (SUPPORT / "wild_models" / "annotated.py").read_text(encoding="utf-8")
    annotated = ", ".join(f"{one}: nn.Module" for one in PARTS.split(", "))
    source = source.replace(PARTS, annotated, 1)
    source = source.replace("\n    def forward(self, src, tgt", method, 1)
    path = folder / "of_parts.py"
    path.write_text(source, encoding="utf-8")
    made: Callable[..., Any] = module_of(str(path)).EncoderDecoder
    return made


def test_model_of_parts_is_built_by_the_method_that_makes_it(tmp_path: Path) -> None:
    found = building(of_parts(tmp_path, OWN), "EncoderDecoder", Reading())
    assert found.expression.startswith("EncoderDecoder.from_sizes(src_vocab=sizes.source_vocab")


def test_model_of_parts_that_nothing_makes_is_asked_about(tmp_path: Path) -> None:
    thing = of_parts(tmp_path, "\n    def forward(self, src, tgt")
    with pytest.raises(
        Unclear, match=r"Nothing says what .*src_embed and tgt_embed.* FILE.py:NAME"
    ):
        building(thing, "EncoderDecoder", Reading())


BATCH_FIRST = (SUPPORT / "wild_models" / "torch_batch_first.py").read_text(encoding="utf-8")


@pytest.mark.proof
@share(4)
@pytest.mark.parametrize(
    ("pad", "edit", "expected"),
    [
        ('src_vocab_size["<pad>"]', "", Status.PASS),
        ("src_vocab_size.stoi.get('[PAD]')", "", Status.PASS),
        ('src_vocab_size["<pad>"]', "(src_vocab_size, embed_dim, padding_idx=0)", Status.PASS),
        ('tgt_vocab_size["<bos>"]', "", Status.VIOLATION),
    ],
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_vocabularies_are_objects(tmp_path: Path, pad: str, edit: str, expected: Status) -> None:
    source = BATCH_FIRST.replace("        src_pad_id=0,\n        tgt_pad_id=0,\n", "")
    source = source.replace(
        "        self.src_pad_id, self.tgt_pad_id, self.embed_dim ="
        " src_pad_id, tgt_pad_id, embed_dim\n",
        f"        self.src_pad_id, self.tgt_pad_id = {pad}, tgt_vocab_size['<pad>']\n"
        f"        src_vocab_size, tgt_vocab_size = len(src_vocab_size), len(tgt_vocab_size)\n"
        f"        self.embed_dim = embed_dim\n",
    )
    assert "len(src" in source
    source = source.replace("(src_vocab_size, embed_dim)", edit or "(src_vocab_size, embed_dim)")
    path = tmp_path / "model.py"
    path.write_text(source, encoding="utf-8")
    backend = attentest.adapted(f"{path}:TransformerModel")
    assert "Vocabulary(sizes.source_vocabulary, sizes.source_pad)" in understood(backend)
    assert status(backend, "pad-ids") is expected
    assert status(backend, "pickle") is Status.PASS


DICTIONARIES = """
import torch
from torch import nn


def stack(kind, width, layers, args):
    heads, size = args["attention"]["n_head"], args["d_ff"]
    made = [kind(width, heads, size, args["dropout"], batch_first=True) for _ in range(layers)]
    return nn.ModuleList(made)


class Transformer(nn.Module):
    def __init__(self, layers, d_model, vocab_size, encoder_args, decoder_args):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        self.encoder = stack(nn.TransformerEncoderLayer, d_model, layers, encoder_args)
        self.decoder = stack(nn.TransformerDecoderLayer, d_model, layers, decoder_args)
        self.loss = nn.CrossEntropyLoss(label_smoothing=decoder_args["label_smoothing"])
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, source, target):
        memory, x = self.table(source), self.table(target)
        for one in self.encoder:
            memory = one(memory)
        later = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        for one in self.decoder:
            x = one(x, memory, tgt_mask=later)
        return self.out(x)
"""


def test_dictionaries_of_two_sides_are_read_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(DICTIONARIES, encoding="utf-8")
    thing = module_of(f"{tmp_path / 'own.py'}:Transformer").Transformer
    made = building(thing, "Transformer", Reading()).expression
    assert made.count("attention=dict(n_head=sizes.heads)") == 2
    assert "label_smoothing=0.0" in made
