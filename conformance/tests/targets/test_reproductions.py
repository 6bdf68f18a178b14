"""Reproductions of inferred code: they run without the suite and print what was judged."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import styles_of_attention as attention
import styles_of_layers as layers
import styles_of_libraries as libraries
import styles_of_models as models
import styles_of_parts as parts
import styles_of_storage as storage
import torch
from standalone import contains_numbers, numbers, run_without_suite

import attentest
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import probing
from attentest.targets.adapt.writing import values as writing
from attentest_spec import Sizes
from attentest_spec.choices import Choices
from attentest_spec.clauses import clauses
from attentest_spec.parameters import shapes

WILD = Path(__file__).parents[1] / "support" / "wild"

MISTAKES = [
    ("attention_without_scale", "attention.formula"),
    ("attention_inverting_one_head", "attention.masked-keys-ignored"),
    ("attention_over_queries", "attention.formula"),
    ("attention_telling_other_weights", "attention.weights-used"),
    ("attention_masking_after", "attention.rows-sum-to-one"),
    ("MultiHeadAttentionMerged", "multi_head_attention.query-order"),
    ("MultiHeadAttentionDeaf", "multi_head_attention.masked-keys-ignored"),
    ("MHAInverted", "multi_head_attention.masked-keys-ignored"),
    ("MultiHeadAttentionAcross", "multi_head_attention.formula"),
    ("SelfAttentionMaskingQueries", "multi_head_attention.masked-keys-ignored"),
    ("Embeddings", "embedding.scale"),
    ("EncoderLayer", "encoder.layer-formula"),
]


SETTLED: dict[str, Any] = {
    "MHAInverted": {"mask": "key_padding_mask:blocks"},
    "MultiHeadAttentionAcross": {"layout": "batch-first"},
}
"""The question that is asked where words and numbers contradict each other."""


@pytest.mark.proof
def test_a_mistake_is_reproduced_without_the_suite() -> None:
    verdicts = []
    for name, clause in MISTAKES:
        target, component = str(WILD / f"broken.py:{name}"), clauses()[clause].component
        backend = attentest.adapted(target, component, **SETTLED.get(name, {}))
        verdicts.append(judge(Bench(backend, diagnose=False), clause))
    counterexamples = [one.counterexample for one in verdicts if one.counterexample is not None]
    assert len(counterexamples) == len(MISTAKES)
    outputs = run_without_suite([one.code for one in counterexamples])
    for (name, clause), verdict, counterexample, (ran, text) in zip(
        MISTAKES, verdicts, counterexamples, outputs, strict=True
    ):
        where = f"{name} {clause}\n{verdict.message}\n{counterexample}\n{text}"
        if verdict.status == "error":
            assert not ran, where
            assert "Error" in text, where
        else:
            assert ran, where
            if "..." not in counterexample.actual:
                assert contains_numbers(text, numbers(counterexample.actual)), where


WILD_CODE = [
    *(("attention.py", name, "") for name in (
        "attention", "scaled_dot_product_attention", "attend", "dot_product_attention", "sdpa",
        "scaled_attention", "softmax_attention", "ScaledDotProductAttention",
    )),
    *(("multi_head_attention.py", name, "") for name in (
        "MultiHeadAttention", "MultiHeadedAttention", "CausalSelfAttention",
        "MultiHeadSelfAttention", "Attention", "MHA", "CrossAttention",
    )),
    *(("parts.py", name, "") for name in (
        "LayerNorm", "PositionwiseFeedForward", "Mlp", "FeedForward", "PositionalEncoding",
        "Embeddings", "TokenEmbedding", "SublayerConnection", "MLP", "Generator", "EncoderLayer",
        "TransformerEncoderBlock", "DecoderLayer",
    )),
    ("parts.py", "SequenceFirstPositionalEncoding", "positional_encoding"),
    *(("stacks.py", name, "") for name in ("Encoder", "Decoder", "Transformer")),
    ("masks.py", "make_pad_mask", "padding_mask"),
    *(("masks.py", name, "") for name in (
        "padding_mask", "subsequent_mask", "generate_square_subsequent_mask", "make_trg_mask",
    )),
]  # fmt: skip
"""Files, names and components of code in many conventions."""

STYLES = [
    *((one, "multi_head_attention") for one in (
        attention.NestedNames, attention.WideHeads, storage.InterleavedByColumn,
        storage.TurnedPacked, storage.ListOfHeads, storage.RawHeads,
    )),
    (layers.GptBlock, "encoder_layer"), (libraries.ListsOfLists, "encoder_layer"),
    (layers.LongNames, "decoder_layer"), (models.Blocks, "encoder"),
    (parts.Convolutions, "feed_forward"), (parts.Gated, "feed_forward"),
    (parts.Nameless, "layer_norm"), (parts.BarePositions, "positional_encoding"),
]  # fmt: skip
"""Classes that take the sizes of the spec, in many ways to store parameters."""


@cache
def adapted(file: str, name: str, component: str) -> Any:
    whole = name == "Transformer"  # its table stays in float64
    return attentest.adapted(str(WILD / f"{file}:{name}"), component, anyway=whole)


def example(backend: Any, component: str, *, gradients: bool = False) -> tuple[str, Any]:
    """Return the reproduction of one call, and what the backend answered."""
    sizes = probing.SIZES.but(heads=1) if backend.limits.heads == 1 else probing.SIZES
    sizes = sizes.but(d_ff=(backend.limits.inner or 1) * sizes.d_model)
    source = np.random.default_rng(0)
    subject = Subject(backend)
    wanted = shapes(component, sizes, Choices.of(backend.choices))
    mapped = backend.recipes[component].parameters
    given = {name: source.normal(size=shape).round(2) for name, shape in wanted.items()}
    probe = subject.part(component, sizes, parameters=given if mapped else None)
    values = inputs(backend, component)
    answer = probe(*values)
    if not gradients:
        return subject.record.counterexample().code, answer
    output = answer[0] if isinstance(answer, tuple) else answer
    found = probe.vjp(tuple(values), np.ones_like(output))
    joined = not backend.limits.cross
    return subject.record.counterexample().code, [found.inputs[0]] if joined else found.inputs


def inputs(backend: Any, component: str) -> list[Any]:
    """Return inputs for `component`, with a mask of the first kind that `backend` takes."""
    kinds = backend.limits.masks
    keys = 5 if component != "decoder_layer" else 7
    keep = np.ones((2, 1, 1, keys), dtype=bool)
    keep[:, :, :, 1] = False
    causal = np.tril(np.ones((1, 1, 5, 5), dtype=bool))
    masks = {"source_mask": keep, "target_mask": causal, "mask": keep}
    if "padding" not in kinds:
        masks = dict.fromkeys(masks, causal if "causal" in kinds else None)
    joined = not backend.limits.cross or component == "decoder"
    given = probing.inputs(component, keys, torch.float64, joined=joined)
    tensors = {**given, **{name: mask for name, mask in masks.items() if name in given}}
    return [one.numpy() if isinstance(one, torch.Tensor) else one for one in tensors.values()]


def flat(answer: Any) -> np.ndarray:
    parts = answer if isinstance(answer, tuple | list) else (answer,)
    return np.concatenate([np.asarray(one, float).ravel() for one in parts if one is not None])


@pytest.mark.proof
def test_every_convention_is_written_out() -> None:
    examples: dict[bool, dict[str, Any]] = {False: {}, True: {}}
    for file, name, component in WILD_CODE:
        backend = adapted(file, name, component)
        model = "model" in backend.components
        examples[model][name] = example(backend, *backend.components)
    for model, some in examples.items():  # the adapter of a model is a backend: it imports the spec
        check_all(list(some), list(some.values()), spec=model)


@pytest.mark.exhaustive
def test_every_way_to_store_parameters_is_written_out() -> None:
    for one, _ in STYLES:  # what says in a user's code that it is built from a data class
        one.__init__.__annotations__.setdefault("sizes", Sizes)
    examples = [example(attentest.adapted(one, name, anyway=True), name) for one, name in STYLES]
    check_all([one.__name__ for one, _ in STYLES], examples, spec=True)


@pytest.mark.proof
def test_gradients_are_pulled_through_the_code_itself() -> None:
    chosen = [one for one in WILD_CODE if one[0] in ("attention.py", "multi_head_attention.py")]
    examples = []
    for file, name, component in chosen:
        backend = adapted(file, name, component)
        code, found = example(backend, *backend.components, gradients=True)
        examples += [(code, one) for one in found if one is not None]
    check_all([str(number) for number in range(len(examples))], examples)


def check_all(names: Sequence[str], examples: Sequence[tuple[str, Any]], *, spec: bool = False):
    whole = "torch.set_printoptions(precision=8"
    codes = [code.replace(whole, f"{whole}, threshold=10**6") for code, _ in examples]
    for name, code, (_, answer), (ran, text) in zip(
        names, codes, examples, run_without_suite(codes, spec=spec), strict=True
    ):
        assert ran, f"{name}\n{code}\n{text}"
        assert contains_numbers(text, flat(answer)), f"{name}\n{code}\n{text}\n{answer}"


def test_tensors_are_written_with_their_strides_and_types() -> None:
    plain = torch.arange(6.0).reshape(2, 3)
    for one in (plain, plain.T, plain[:, :2], plain.bfloat16(), plain > 2, plain[:0], plain.long()):
        again = eval(writing.tensor(one, grad=one.is_floating_point()), {"torch": torch})
        assert torch.equal(again, one)
        assert (again.stride(), again.dtype) == (one.stride(), one.dtype)
        assert again.requires_grad is one.is_floating_point()


@pytest.mark.parametrize(
    "value",
    [None, True, -2, 1.5, float("-inf"), "a'b", [1, (2,), {"a": 3}], torch.float32, slice],
)
def test_values_are_written_as_expressions(value: Any) -> None:
    writer = writing.Writer()
    text = writer.value(value)
    named: dict[str, Any] = {}
    exec("\n".join(writer.imports), named)
    assert eval(text, named) == value


@pytest.mark.proof
def test_copies_and_modes_of_a_module_are_written_in_torch() -> None:
    backend = adapted("multi_head_attention.py", "MultiHeadAttention", "")
    (component,) = backend.components
    subject = Subject(backend)
    probe = subject.part(component, probing.SIZES)
    probe.train()
    probe.eval()
    copies = [
        probe.become("copying", lambda part: part.copied("deepcopy")),
        probe.become("pickling", lambda part: part.copied("pickle")),
        probe.become("reloading", lambda part: part.reloaded()),
        probe.become("moving", lambda part: part.moved(precision="float32"), "float32"),
    ]
    answers = [one(*inputs(backend, component)) for one in copies]
    probe.do("listing", lambda part: part.inventory())
    probe.do("comparing", lambda part: sorted(part.export()))
    code = subject.record.counterexample().code
    for line in ("module.train()", "module_2 = copy.deepcopy(module)", "# then: comparing"):
        assert line in code
    check_all(["copies"] * 4, [(code, one) for one in answers])


def test_a_function_that_is_moved_stays_what_it_is() -> None:
    backend = adapted("attention.py", "attention", "")
    subject = Subject(backend)
    probe = subject.part("attention", probing.SIZES)
    moved = probe.become("moving", lambda part: part.moved(precision="float32"), "float32")
    answer = moved(*inputs(backend, "attention"))
    check_all(["moved"], [(subject.record.counterexample().code, answer)])
