"""Whole models by their constants, their makers, one argument for all tokens, and other names."""

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

LANGUAGE_MODELS, MODELS = SUPPORT / "wild_language_models", SUPPORT / "wild_models"


def read(
    folder: Path, source: Path, name: str, *edits: tuple[str, str], component: str = ""
) -> Any:
    """Return the class `name` of the file `source` with `edits`, as a backend."""
    text = source.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    (folder / source.name).write_text(text, encoding="utf-8")
    return attentest.adapted(str(folder / f"{source.name}:{name}"), component=component)


def status(backend: Any, clause: str) -> Status:
    """Return the status of one clause."""
    return judge(Bench(backend, shrink=False, diagnose=False, effort=0.1), clause).status


CONSTANTS = (
    ("class Head(", "n_embd, n_head, n_layer, block_size = 384, 6, 6, 256\n\n\nclass Head("),
    ("vocab_size, n_embd=384, n_head=6, n_layer=6, block_size=256, dropout=0.2", "dropout=0.2"),
    ("class GPT", "vocab_size = 65\n\n\nclass GPT"),
)


@pytest.mark.exhaustive
def test_constants_of_a_language_model_are_its_sizes(tmp_path: Path) -> None:
    backend = read(tmp_path, LANGUAGE_MODELS / "lecture.py", "GPTLanguageModel", *CONSTANTS)
    assert any("constants of the code are sizes" in one for one in backend.assumed)
    assert status(backend, "language_model.formula") is Status.PASS
    space: dict[str, Any] = {}
    exec(backend.written(), space)
    assert status(space["backend"], "language_model.causality") is Status.PASS


@pytest.mark.exhaustive
def test_mistakes_in_such_a_model_are_asked_about_or_violations(tmp_path: Path) -> None:
    lecture = LANGUAGE_MODELS / "lecture.py", "GPTLanguageModel", *CONSTANTS
    with pytest.raises(Unclear):
        read(tmp_path, *lecture, ("        self.token_", "        n_embd = 8\n        self.token_"))
    scaled = read(tmp_path, *lecture, ("k.shape[-1] ** -0.5", "x.shape[-1] ** -0.5"))
    assert status(scaled, "language_model.formula") is Status.VIOLATION


def test_a_constant_beside_an_argument_of_the_same_size_is_no_size(tmp_path: Path) -> None:
    constant = ("class Head(", "n_embd, d_model = 384, 384\n\n\nclass Head(")
    fixed = ("self.ln_f = nn.LayerNorm(n_embd)", "self.ln_f = nn.LayerNorm(d_model)")
    with pytest.raises(Unclear, match="could not be"):
        read(tmp_path, LANGUAGE_MODELS / "lecture.py", "GPTLanguageModel", constant, fixed)


MADE = (
    ("max_seq_len, dim, depth, heads=8)", "max_seq_len, dim, attn_layers)"),
    ("self.attn_layers = Decoder(dim, depth, heads)", "self.attn_layers = attn_layers"),
)
MAKER = """{}


def small(vocab_size, length, width, depth, heads):
    layers = Decoder(width, depth, heads)
    return TransformerWrapper(
        num_tokens=vocab_size, max_seq_len=length, dim=width, attn_layers=layers
    )"""
LAST = "return self.to_logits(self.attn_layers(x))"


@pytest.mark.proof
def test_a_language_model_of_parts_is_built_by_the_function_that_makes_it(tmp_path: Path) -> None:
    made = (*MADE, (LAST, MAKER.format(LAST)))
    backend = read(tmp_path, LANGUAGE_MODELS / "wrapped.py", "TransformerWrapper", *made)
    assert any("is built as small does" in one for one in backend.assumed)
    assert status(backend, "language_model.formula") is Status.PASS
    assert backend.adapter.origin.expression == "small"


def test_a_function_without_sizes_is_not_called(tmp_path: Path) -> None:
    trained = f"""{LAST}


def train():
    open({str(tmp_path / "ran")!r}, "w")
    return TransformerWrapper(num_tokens=9, max_seq_len=9, dim=8, attn_layers=Decoder(8, 2, 2))"""
    with pytest.raises(Unclear, match="could not be built as a decoder-only model"):
        read(
            tmp_path,
            LANGUAGE_MODELS / "wrapped.py",
            "TransformerWrapper",
            *MADE,
            (LAST, trained),
            component="language_model",
        )
    assert not (tmp_path / "ran").exists()


PACKED = ("forward(self, src, tgt):", "forward(self, inputs):\n        {} = inputs")


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    ("order", "edits", "expected"),
    [
        ("src, tgt", (), Status.PASS),
        ("tgt, src", (), Status.PASS),
        ("src, tgt", (("device=src.device).tril()", "device=src.device)"),), Status.VIOLATION),
    ],
    ids=["source-first", "target-first", "not-causal"],
)
def test_one_argument_that_is_taken_apart_holds_both_sides(
    order: str, edits: Any, expected: Status, tmp_path: Path
) -> None:
    packed = (PACKED[0], PACKED[1].format(order))
    backend = read(tmp_path, MODELS / "one_pad.py", "Transformer", packed, *edits)
    assert status(backend, "model.formula") is expected


def test_one_argument_with_more_parts_is_a_question(tmp_path: Path) -> None:
    packed = (PACKED[0], PACKED[1].format("src, tgt, _"))
    with pytest.raises(Unclear, match="its one argument holds both"):
        read(tmp_path, MODELS / "one_pad.py", "Transformer", packed)


BIAS = (
    (
        "        assert n_src_vocab",
        "        self.bias = nn.Parameter(torch.zeros(n_trg_vocab))\n        assert n_src_vocab",
    ),
    ("return self.out(x)", "return self.out(x) + self.bias"),
)


@pytest.mark.proof
def test_a_bias_apart_from_a_tied_generator_is_its_bias(tmp_path: Path) -> None:
    backend = read(tmp_path, MODELS / "shared_table.py", "TranslationModel", *BIAS)
    assert any("generator.bias" in one for one in backend.understood)
    assert status(backend, "model.formula") is Status.PASS


NAMED = (
    ("enc_inputs, dec_inputs):", "article, headline, article_{0}=None, headline_{0}=None):"),
    ("enc_inputs", "article"),
    ("dec_inputs", "headline"),
    ("article.eq(pad)[:, None]", "article_{0}[:, None]"),
    ("| headline.eq(pad)[:, None]", "| headline_{0}[:, None]"),
)


def named(word: str, *edits: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the edits that hand in masks whose names end in `word`."""
    return [*((old, new.format(word)) for old, new in NAMED), *edits]


@pytest.mark.proof
def test_masks_are_named_after_the_tokens_that_they_hide(tmp_path: Path) -> None:
    backend = read(tmp_path, MODELS / "shared_table.py", "TranslationModel", *named("padding"))
    assert "article_padding: True blocks" in "\n".join(backend.understood)
    assert status(backend, "model.formula") is Status.PASS


def test_other_arguments_of_a_model_that_sees_padding_are_one_question(tmp_path: Path) -> None:
    seen = [
        (f"{own}_hidden[:, None]", f"shown({own}, {own}_hidden)[:, None]")
        for own in ("article", "headline")
    ]
    shown = (
        "class Attention(",
        "def shown(ids, hidden):\n"
        "    return torch.zeros_like(ids).bool() if hidden is None else hidden\n\n\n"
        "class Attention(",
    )
    with pytest.raises(Unclear, match="gives no value to article_hidden and headline_hidden"):
        read(
            tmp_path,
            MODELS / "shared_table.py",
            "TranslationModel",
            *named("hidden", *seen, shown),
        )


STACK = """class Layers(nn.Module):
    def __init__(self, n, *sizes):
        super().__init__()
        self.layer = nn.ModuleList(Layer(*sizes) for _ in range(n))

    def forward(self, h, mask):
        for layer in self.layer:
            h = layer(h, mask)
        return h


class BERT("""
LIST = "self.layers = nn.ModuleList(\n            Layer("
LOOP = "        for layer in self.layers:\n            h = layer(h, mask)\n        return self.mlm"
IN_A_STACK = (
    ("class BERT(", STACK),
    (LIST, "self.stack = (\n            Layers(n_layers, "),
    ("ffn_hidden, dropout) for _ in range(n_layers)", "ffn_hidden, dropout)"),
    (LOOP, "        h = self.stack(h, mask)\n        return self.mlm"),
)
GIVEN = ("x, segment_info):", "x, segment_info, mask):")
NOT_HIDDEN = (("(x > 0)", "pad = 0\n        mask = (x > -1)"),)
ENCODER = SUPPORT / "wild_encoders" / "bert_like.py"


@pytest.mark.proof
@pytest.mark.parametrize(
    ("made", "expected"), [("(x > 0)", Status.PASS), ("(x == 0)", Status.VIOLATION)]
)
def test_masks_that_a_class_makes_for_its_stack_are_judged(
    made: str, expected: Status, tmp_path: Path
) -> None:
    backend = read(tmp_path, ENCODER, "BERT", *IN_A_STACK, ("(x > 0)", made))
    assert status(backend, "encoder.formula") is expected


@pytest.mark.proof
def test_mask_that_hides_no_padding_is_an_assumption(tmp_path: Path) -> None:
    backend = read(tmp_path, ENCODER, "BERT", *IN_A_STACK, *NOT_HIDDEN)
    assert any("hides no padding on purpose" in one for one in backend.assumed), backend.assumed


@pytest.mark.parametrize(
    ("made", "means"),
    [("(mask > 0)", "True may be attended"), ("(mask == 0)", "a mistake if it is meant to allow")],
)
def test_mask_that_is_handed_to_a_stack_is_judged_with_what_it_means(
    made: str, means: str, tmp_path: Path
) -> None:
    backend = read(tmp_path, ENCODER, "BERT", *IN_A_STACK, GIVEN, ("(x > 0)", made))
    assert any(one.startswith("mask: ") and means in one for one in backend.understood)
    assert status(backend, "encoder.formula") is Status.PASS
    assert status(backend, "encoder.padding-invariance") is Status.PASS


@pytest.mark.proof
def test_a_masked_language_model_is_an_encoder(tmp_path: Path) -> None:
    backend = read(tmp_path, ENCODER, "BertMLM", ("BERT", "BertMLM"))
    assert backend.components == ("encoder",)


@pytest.mark.proof
def test_a_width_without_a_telling_name_is_tried(tmp_path: Path) -> None:
    backend = read(tmp_path, MODELS / "einsum.py", "Seq2Seq", ("d_model", "breadth"))
    assert "breadth=sizes.d_model" in "\n".join(backend.understood)


SHORT = (
    "(self, hidden, heads, ffn, dropout):",
    "(self, E, heads, ff, rate):\n        hidden, ffn, dropout = E, ff, rate",
)


def test_short_names_of_sizes_are_read(tmp_path: Path) -> None:
    backend = read(tmp_path, ENCODER, "Layer", SHORT, component="encoder_layer")
    assert "d_ff" in "\n".join(backend.understood)
    assert status(backend, "encoder.layer-formula") is Status.PASS


@pytest.mark.proof
def test_a_class_by_the_name_of_a_generator_with_two_inputs_is_a_model(tmp_path: Path) -> None:
    backend = read(
        tmp_path, MODELS / "einsum.py", "AnswerGenerator", ("Seq2Seq", "AnswerGenerator")
    )
    assert backend.components == ("model",)
