"""The model oracle against torch's stacks, put together here by hand, and the chapter's laws."""

from dataclasses import replace

import numpy as np
import pytest
import reference
import torch
from reference import SIZES, hidden, setting, tensor
from torch import Tensor
from torch.nn import functional

from attentest_spec.choices import Value
from attentest_spec.model import decode, encode, model
from attentest_spec.setting import Array, Setting

PADS = SIZES.but(source_pad=3, target_pad=5)
SOURCE = np.array([[7, 2, 16, 3, 3], [5, 3, 9, 11, 1]])
TARGET = np.array([[1, 9, 3, 2, 5, 5, 5], [12, 4, 5, 0, 8, 3, 6]])


def drawn(rng: np.random.Generator, **choices: Value) -> Setting:
    """Draw a model whose two pad ids differ from each other and from zero."""
    return setting("model", rng, PADS, **choices)


def waves(length: int) -> Tensor:
    """Compute the paper's table entry by entry."""
    rows = torch.empty(length, 6, dtype=torch.float64)
    for position in range(length):
        for column in range(0, 6, 2):
            angle = torch.tensor(position / 10000 ** (column / 6), dtype=torch.float64)
            rows[position, column], rows[position, column + 1] = angle.sin(), angle.cos()
    return rows


def embedded(given: Setting, side: str, tokens: Array) -> Tensor:
    """Look tokens up with torch, scale them by sqrt(6) and add the table."""
    table = functional.embedding(tensor(tokens), tensor(given[f"{side}_embedding.weight"]))
    return table * 6**0.5 + waves(tokens.shape[1])


def of_torch(given: Setting, source: Array, target: Array) -> Array:
    """Compute the logarithms of the probabilities with torch's stacks."""
    length = target.shape[1]
    keep_source = (source != 3)[:, None, None, :]
    keep_target = (target != 5)[:, None, None, :] & np.tri(length, dtype=bool)
    memory = reference.encoder(given.under("encoder"))(
        embedded(given, "source", source), mask=hidden(keep_source, source.shape[1], 2)
    )
    state = reference.decoder(given.under("decoder"))(
        embedded(given, "target", target),
        memory,
        tgt_mask=hidden(keep_target, length, 2),
        memory_mask=hidden(keep_source, length, 2),
    )
    generator = tensor(given["generator.weight"]), tensor(given["generator.bias"])
    return reference.array(functional.log_softmax(functional.linear(state, *generator), dim=-1))


@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("final", ["none", "present"])
def test_equals_torch(rng: np.random.Generator, placement: str, final: str) -> None:
    given = drawn(rng, norm_placement=placement, final_norm=final, output="log-probabilities")
    found = model(given, SOURCE, TARGET)
    assert found.shape == (2, 7, 13)
    np.testing.assert_allclose(found, of_torch(given, SOURCE, TARGET), rtol=0, atol=1e-12)


def test_encode_then_decode_is_the_model(rng: np.random.Generator) -> None:
    given = drawn(rng)
    memory = encode(given, SOURCE)
    assert memory.shape == (2, 5, 6)
    assert (decode(given, TARGET, memory, SOURCE) == model(given, SOURCE, TARGET)).all()


def test_decode_hides_the_padding_of_the_source_alone(rng: np.random.Generator) -> None:
    given = drawn(rng)
    memory = encode(given, SOURCE)
    before = decode(given, TARGET, memory, SOURCE)
    for pad, hidden_rows in ((3, True), (5, False)):
        padding = np.equal(SOURCE, pad)
        moved = np.where(padding[..., None], memory + rng.normal(size=6), memory)
        changed = np.abs(decode(given, TARGET, moved, SOURCE) - before).max(axis=(1, 2))
        assert ((changed > 1e-9) == (padding.any(axis=1) & (not hidden_rows))).all()


@pytest.mark.parametrize("positions", ["interleaved", "learned", "none"])
def test_sequence_alone_equals_itself_in_a_batch(rng: np.random.Generator, positions: str) -> None:
    given = drawn(rng, positional_encoding=positions)
    whole = model(given, SOURCE, TARGET)
    alone = model(given, SOURCE[:1, :3], TARGET[:1, :4])
    np.testing.assert_allclose(whole[:1, :4], alone, atol=1e-13)


def test_each_side_has_its_own_pad(rng: np.random.Generator) -> None:
    given = drawn(rng)
    swapped = replace(given, sizes=given.sizes.but(source_pad=5, target_pad=3))
    assert np.abs(model(swapped, SOURCE, TARGET) - model(given, SOURCE, TARGET)).max() > 1e-6


def test_each_side_has_its_own_table_of_positions(rng: np.random.Generator) -> None:
    given = drawn(rng, positional_encoding="learned")
    before = model(given, SOURCE, TARGET)
    for side in ("source", "target"):
        name = f"{side}_positions.weight"
        other = dict(given.parameters) | {name: rng.normal(size=given[name].shape)}
        changed = model(replace(given, parameters=other), SOURCE, TARGET)
        assert np.abs(changed - before).max() > 1e-6


def test_a_prefix_gives_the_same_steps(rng: np.random.Generator) -> None:
    given = drawn(rng, output="logits")
    whole = model(given, SOURCE, TARGET)
    for length in range(1, 8):
        prefix = model(given, SOURCE, TARGET[:, :length])
        np.testing.assert_allclose(prefix, whole[:, :length], atol=1e-13)


def test_tied_matrices_come_tied(rng: np.random.Generator) -> None:
    given = setting("model", rng, SIZES.but(source_vocabulary=13), tying="all-three")
    weight = given["source_embedding.weight"]
    assert (given["target_embedding.weight"] == weight).all()
    assert (given["generator.weight"] == weight).all()
    assert np.isfinite(model(given, SOURCE % 13, TARGET)).all()


def test_tokens_stay_as_they_were(rng: np.random.Generator) -> None:
    source, target = SOURCE.copy(), TARGET.copy()
    model(drawn(rng), source, target)
    assert (source == SOURCE).all()
    assert (target == TARGET).all()


def test_the_embedding_norm_is_applied_to_the_sum(rng: np.random.Generator) -> None:
    given = drawn(rng, embedding_norm="present")
    norm = given.under("source_embedding_norm")
    gain, bias = tensor(norm["gain"]), tensor(norm["bias"])
    summed = embedded(given, "source", SOURCE)
    normed = functional.layer_norm(summed, (6,), gain, bias, given.choices.norm_epsilon)
    keep = hidden((SOURCE != 3)[:, None, None, :], SOURCE.shape[1], 2)
    memory = reference.encoder(given.under("encoder"))(normed, mask=keep)
    found = encode(given, SOURCE)
    np.testing.assert_allclose(found, reference.array(memory), atol=1e-11)


def test_each_side_has_an_embedding_norm_of_its_own(rng: np.random.Generator) -> None:
    given = drawn(rng, embedding_norm="present")
    for side, changes in (("source", True), ("target", False)):
        name = f"{side}_embedding_norm.bias"
        other = replace(given, parameters={**given.parameters, name: rng.normal(size=6)})
        assert (encode(other, SOURCE) != encode(given, SOURCE)).any() == changes
        assert (model(other, SOURCE, TARGET) != model(given, SOURCE, TARGET)).any()
