"""Decoder-only models that take their layers, tables and heads as objects."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.file_modules import load
from attentest.targets.neighbours import named_builders
from attentest.targets.signatures import constructor_arguments

LAYERS = """
import torch
from torch import nn


def grouped(prefix, keywords):
    own = {name: one for name, one in keywords.items() if name.startswith(prefix)}
    rest = {name: one for name, one in keywords.items() if name not in own}
    return {name.removeprefix(prefix): one for name, one in own.items()}, rest


class Layers(nn.Module):
    def __init__(self, dim, depth, heads=8, causal=False, **keywords):
        super().__init__()
        attn, keywords = grouped("attn_", keywords)
        self.width, self.heads, self.causal = attn.get("dim_head", 64), heads, causal
        inner = heads * self.width
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth + 1))
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * inner, bias=False) for _ in range(depth))
        self.outs = nn.ModuleList(nn.Linear(inner, dim, bias=False) for _ in range(depth))
        self.ups = nn.ModuleList(nn.Linear(dim, 4 * dim) for _ in range(depth))
        self.downs = nn.ModuleList(nn.Linear(4 * dim, dim) for _ in range(depth))

    def forward(self, x):
        for number in range(len(self.qkv)):
            heads = self.qkv[number](self.norms[2 * number](x)).chunk(3, dim=-1)
            q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in heads)
            scores = q @ k.mT / self.width**0.5
            if self.causal:
                later = torch.ones_like(scores, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(later, -torch.inf)
            mixed = scores.softmax(-1) @ v
            x = x + self.outs[number](mixed.transpose(1, 2).flatten(2))
            h = self.norms[2 * number + 1](x)
            x = x + self.downs[number](nn.functional.gelu(self.ups[number](h)))
        return self.norms[-1](x)


class Encoder(Layers):
    def __init__(self, **keywords):
        super().__init__(causal=False, **keywords)


class Decoder(Layers):
    def __init__(self, **keywords):
        super().__init__(causal=True, **keywords)


class Wrapper(nn.Module):
    def __init__(self, *, num_tokens, max_seq_len, layers: Layers, tables={}):
        super().__init__()
        dim = layers.norms[0].weight.shape[0]
        self.words, self.places = nn.Embedding(num_tokens, dim), nn.Embedding(max_seq_len, dim)
        self.layers, self.head = layers, nn.Linear(dim, num_tokens, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        return self.head(self.layers(self.words(tokens) + self.places(places)))
"""
CLAUSE = "language_model.formula"
HANDED = """

class EmbeddingsWithPositions(nn.Module):
    def __init__(self, d_model, n_vocab, max_len=90):
        super().__init__()
        self.words, self.places = nn.Embedding(n_vocab, d_model), nn.Embedding(max_len, d_model)

    def forward(self, tokens):
        return self.words(tokens) + self.places(torch.arange(tokens.shape[1]))


class Generator(nn.Module):
    def __init__(self, n_vocab, d_model):
        super().__init__()
        self.projection = nn.Linear(d_model, n_vocab)

    def forward(self, x):
        return self.projection(x)


class GPT(nn.Module):
    def __init__(self, decoder: Decoder, src_embed: nn.Module, generator: nn.Module):
        super().__init__()
        self.src_embed, self.decoder, self.generator = src_embed, decoder, generator

    def forward(self, x):
        return self.generator(self.decoder(self.src_embed(x)))
"""


@pytest.mark.proof
def test_decoder_of_the_annotation_is_put_in_and_assumed(tmp_path):
    backend = adapted(tmp_path, "Wrapper", LAYERS)
    assert any("layers is a Decoder of own.py" in one for one in backend.assumed)
    assert not broken(backend, CLAUSE)
    assert "Decoder(" in backend.written()


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" / self.width**0.5", " / self.width"),
        (".triu(1)", ".triu(2)"),
        ("x = x + self.outs", "x = h + self.outs"),
        ("causal=True, **", "causal=False, **"),
        ("self.places(places)", "self.places(places.flip(0))"),
    ],
)
def test_mistake_in_such_a_part_is_found(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "Wrapper", LAYERS, right, wrong, CLAUSE)


def test_class_that_is_given_takes_the_place_of_the_nearest_one(tmp_path):
    with pytest.raises(Unclear):  # an encoder sees later tokens
        adapted(tmp_path, "Wrapper", LAYERS, given={"layers": "Encoder"})


def test_several_classes_of_a_part_are_one_question(tmp_path):
    several = (
        edited(
            LAYERS,
            ("layers: Layers", "layers: Layers, embedding"),
            ("nn.Embedding(num_tokens, dim), nn", "embedding, nn"),
        )
        + """
class TextEmbedding(nn.Module):
    def __init__(self, num_tokens, dim):
        super().__init__()

class Embedding(TextEmbedding):
    pass

class Embeddings(TextEmbedding):
    x = 1
"""
    )
    with pytest.raises(Unclear, match="--give embedding=Embedding says which one"):
        adapted(tmp_path, "Wrapper", several, component="language_model")


def test_class_that_embeds_is_asked_for(tmp_path):
    with pytest.raises(Unclear) as question:
        adapted(tmp_path, "GPT", LAYERS + HANDED)
    assert "Nothing says what src_embed is." in str(question.value)
    assert "--give src_embed=EmbeddingsWithPositions builds it of" in str(question.value)
    assert "sizes." not in str(question.value)


@pytest.mark.proof
def test_model_with_the_class_that_is_given_is_judged(tmp_path):
    given = {"src_embed": "EmbeddingsWithPositions"}
    backend = adapted(tmp_path, "GPT", LAYERS + HANDED, given=given)
    assert not broken(backend, CLAUSE)
    wrong = (LAYERS + HANDED).replace(" / self.width**0.5", " / self.width")
    with pytest.raises(Unclear, match=r"scores that are divided by d_k.*own\.py:28"):
        adapted(tmp_path, "GPT", wrong, given=given)


@pytest.mark.proof
def test_question_about_scores_without_a_scale_names_the_choice(tmp_path):
    plain = LAYERS.replace(" / self.width**0.5", "")
    with pytest.raises(Unclear, match="declared with --choice score_scale=1"):
        adapted(tmp_path, "Wrapper", plain)
    assert not broken(adapted(tmp_path, "Wrapper", plain, choices={"score_scale": 1.0}), CLAUSE)


def test_part_that_takes_one_of_its_own_kind_is_a_question(tmp_path):
    endless = LAYERS.replace("layers: Layers", 'layers: "Wrapper"')
    with pytest.raises(Unclear):
        adapted(tmp_path, "Wrapper", endless, component="language_model")


def test_keywords_of_a_prefix_are_arguments():
    class Grouped:
        def __init__(self, dim, **keywords):
            attn, keywords = grouped("attn_", keywords)
            self.width = dim, attn.get("dim_head", 64), attn.pop("flash", False)

    def grouped(prefix, keywords):
        return {}, {}

    assert [*constructor_arguments(Grouped)] == ["attn_dim_head", "attn_flash", "dim"]


def test_functions_of_the_package_that_build_a_class_are_named(tmp_path, monkeypatch):
    folder = tmp_path / "written_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    wrapper = LAYERS.replace("layers: Layers", "layers").replace("dim = layers", "dim = layers[0]")
    (folder / "classes.py").write_text(wrapper)
    maker = "from written_package.classes import Layers, Wrapper\n\n\ndef small(vocab, **others):\n"
    maker += "    return Wrapper(num_tokens=vocab, layers=[Layers(**others)])\n"
    (folder / "sizes.py").write_text(maker)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(Unclear, match=r"build it are targets too: written_package\.sizes:small"):
        attentest.adapted("written_package.classes:Wrapper", component="language_model")


@pytest.mark.parametrize(
    ("module", "named"), [("packed.classes", True), ("packed", True), ("other.classes", False)]
)
def test_functions_that_build_a_namesake_of_another_package_are_not_named(tmp_path, module, named):
    for folder in ("packed", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("from .classes import Wrapper\n")
        (tmp_path / folder / "classes.py").write_text(
            "from torch import nn\n\n\nclass Wrapper(nn.Module):\n    pass\n"
        )
    maker = f"from {module} import Wrapper\n\n\ndef small(vocab):\n    return Wrapper(vocab)\n"
    (tmp_path / "making.py").write_text(maker)
    made = load(tmp_path / "packed" / "classes.py")
    assert ("making.py:small" in named_builders(made.Wrapper)) is named
