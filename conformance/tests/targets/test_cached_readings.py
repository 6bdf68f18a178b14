"""Decoder-only models with caches in different published styles, read without an option."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status, Verdict
from attentest.targets.adapt import Unclear
from attentest.targets.language_models.argument_names import caches_named
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Backend

WILD = SUPPORT / "wild_cached_models"

SOUND = [
    ("nano_past.py:GPT", "cache=past_key_values, begun without one, returned as 1", "functional"),
    ("llama_objects.py:LlamaModel", "begun as [KVCache() for _ in range(sizes.layers)]", ""),
    ("static_buffer.py:DecoderLM", "model.make_cache(batch_size=rows), changed", "start_pos"),
    ("outputs_past.py:TinyForCausalLM", "returned as 'past_key_values'", "functional"),
    ("one_cache.py:BloomLM", "begun as Cache(n_layers=sizes.layers), changed by each", "in-place"),
    ("lists.py:LM", "cache=kv_cache, begun without one, returned as 'kv_cache'", ""),
]
"""Sound models, and what is said of how their caches are read."""

CLAUSES = (
    "formula",
    "chunks",
    "positions",
    "positions-given",
    "left-padding",
    "prompt-padding",
    "key-heads",
    "reorder",
    "reset",
    "continued-twice",
    "shapes",
    "beyond-length",
)
"""Clauses that the mistakes below break, or that a wrong reading would."""

PAST = "0 if past_key_values is None else past_key_values[0][0].size(2)"
BUFFER = "k, v = keys[:, :, : start_pos + t], values[:, :, : start_pos + t]"

MISTAKES = [
    ("nano_past.py:GPT", f"start = {PAST}", "start = 0", "formula"),
    ("nano_past.py:GPT", f"start = {PAST}", f"start = {PAST} + 1", "formula"),
    ("nano_past.py:GPT", "[total - t : total]", "[:t]", "formula"),
    ("nano_past.py:GPT", "att = att.masked", "att = att if layer_past else att.masked", "chunks"),
    ("nano_past.py:GPT", "past_key_values[i]", "past_key_values[0]", "formula"),
    ("nano_past.py:GPT", "present = (k, v)", "present = (k[:, :, -t:], v[:, :, -t:])", "?"),
    ("nano_past.py:GPT", "(layer_past[1], v)", "(v, layer_past[1])", "?"),
    ("llama_objects.py:LlamaModel", "0 if cache is None else len(cache)", "0", "formula"),
    ("llama_objects.py:LlamaModel", "rope(k, offset)", "rope(k, 0)", "?"),
    ("llama_objects.py:LlamaModel", ".tril(offset)", ".tril()", "formula"),
    ("llama_objects.py:LlamaModel", "self.values = keys, val", "self.values = keys + 1, val", "?"),
    ("static_buffer.py:DecoderLM", "key > query", "key > query - start_pos", "formula"),
    ("static_buffer.py:DecoderLM", "arange(start_pos, start_pos + ids", "arange(0, ids", "formula"),
    ("static_buffer.py:DecoderLM", "[:, :, start_pos : start_pos + t] = v", "[:, :, :t] = v", "?"),
    ("outputs_past.py:TinyForCausalLM", ".tril()[past:]", ".tril()[:t]", "formula"),
    ("outputs_past.py:TinyForCausalLM", "mask is not None", "mask is not None and not past", "?"),
    ("outputs_past.py:TinyForCausalLM", "ids[:, None, :", "ids[:1, None, :", "positions-given"),
    ("outputs_past.py:TinyForCausalLM", "torch.arange(past, past + t,",
     "torch.arange(past and past - 1, (past and past - 1) + t,", "?"),
    ("one_cache.py:BloomLM", "0 if cache is None else cache.length()", "0", "formula"),
    ("one_cache.py:BloomLM", "= (k, v)", "= self.pairs[layer] or (k, v)", "?"),
    ("lists.py:LM", "triu(before + 1)", "triu(1)", "formula"),
    ("lists.py:LM", 'torch.arange(first, first + n', 'torch.arange(0, n', "formula"),
]  # fmt: skip
"""A model, an edit that injects a mistake, and the clause that it breaks; "?" is a question."""

OTHERS = [
    ("nano_past.py:GPT", "        start = 0 if",
     "        if past_key_values is not None and idx.size(1) > 1:\n"
     "            raise ValueError('one token at a time')\n        start = 0 if",
     "one new token at a time after the first ones"),
    ("outputs_past.py:TinyForCausalLM", "torch.arange(past, past + t,", "torch.arange(t,",
     "assumed that every step with a cache is given the positions of its tokens"),
    ("outputs_past.py:TinyForCausalLM", "past_key_values=None,\n        use_cache",
     "past_key_values=None,\n        *,\n        use_cache", "returned as 'past_key_values'"),
    ("lists.py:LM", '"kv_cache": kept}', '"kv_cache": tuple(kept)}', "kv_cache"),
    ("lists.py:LM", 'else {"logits": logits}', "else logits", "returned as 'kv_cache'"),
    ("lists.py:LM", '{"logits": logits, "kv_cache": kept} if return_cache else {"logits": logits}',
     "(logits, kept) if return_cache else logits", "returned as 1"),
]  # fmt: skip
"""An edit after which a model is as sound as before, and what is said of it."""


def judged(backend: Backend) -> Iterator[Verdict]:
    """Yield the verdicts on the clauses about caches, each as it is asked for."""
    bench = Bench.for_status(backend, effort=0.1)
    return (judge(bench, f"language_model.cached-{name}") for name in CLAUSES)


def edited(target: str, old: str, new: str, folder: Path) -> str:
    """Return the target of a model after an edit."""
    file, _, name = target.partition(":")
    source = (WILD / file).read_text()
    assert old in source
    (folder / file).write_text(source.replace(old, new))
    return f"{folder / file}:{name}"


def assert_conforms(target: str, *said: str) -> None:
    """Assert that a model is read with its cache, with these words, and conforms."""
    backend = attentest.adapted(target)
    assert isinstance(backend, AdaptedWhole)
    read = "\n".join(backend.understood)
    for sentence in said:
        assert sentence in read, read
    verdicts = list(judged(backend))
    assert not [one.message for one in verdicts if one.status.fails_run]
    assert sum(one.status.judged for one in verdicts) >= 5


@pytest.mark.proof
@share(12)
@pytest.mark.parametrize(
    ("target", "said"),
    [(one, rest) for one, *rest in SOUND],
)
def test_sound_models_are_continued_and_conform(target: str, said: list[str]) -> None:
    assert_conforms(str(WILD / target), *said)


@pytest.mark.proof
@share(3, rest=2)
@pytest.mark.parametrize(("target", "old", "new", "said"), OTHERS)
def test_other_conventions_of_steps_are_read(
    target: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    assert_conforms(edited(target, old, new, tmp_path), said)


@pytest.mark.proof
@share(5, rest=3)
@pytest.mark.parametrize(("target", "old", "new", "clause"), MISTAKES)
def test_mistakes_of_caches_are_asked_about_or_detected(
    target: str, old: str, new: str, clause: str, tmp_path: Path
) -> None:
    wrong = edited(target, old, new, tmp_path)
    if clause == "?":
        with pytest.raises(Unclear, match="cache"):
            attentest.adapted(wrong)
        return
    bench = Bench.for_status(attentest.adapted(wrong), effort=0.1)
    assert judge(bench, f"language_model.cached-{clause}").status.fails_run


@pytest.mark.exhaustive
def test_positions_that_start_again_are_never_beyond_a_learned_table(tmp_path: Path) -> None:
    """The reference has no such positions: this is a violation, and no bug of the suite."""
    target = edited("nano_past.py:GPT", f"start = {PAST}", "start = 0", tmp_path)
    bench = Bench.for_status(attentest.adapted(target))
    verdict = judge(bench, "language_model.cached-beyond-length")
    assert verdict.status is Status.VIOLATION
    assert "was not refused" in verdict.message


@pytest.mark.proof
def test_an_argument_that_takes_no_cache_is_left_out(tmp_path: Path) -> None:
    target = edited("lists.py:LM", "kv_cache = kv_cache or [None]", "kv_cache = [None]", tmp_path)
    source = Path(target.partition(":")[0])
    source.write_text(source.read_text().replace(', "kv_cache": kept}', "}"))
    backend = attentest.adapted(target)
    assert "cached_language_model" not in backend.components
    assert isinstance(backend, AdaptedWhole)
    assert any(one.startswith("kv_cache is left out: how its cache") for one in backend.assumed)


def test_the_written_adapter_continues_too() -> None:
    backend = attentest.adapted(str(WILD / "static_buffer.py:DecoderLM"))
    assert isinstance(backend, AdaptedWhole)
    space: dict[str, object] = {}
    exec(backend.written(), space)
    written = space["backend"]
    assert isinstance(written, Backend)
    assert tuple(written.components) == ("language_model", "cached_language_model")
    assert not [one.message for one in judged(written) if one.status.fails_run]


def test_first_step_that_raises_is_asked_about(tmp_path: Path) -> None:
    right = "keys[:, :, start_pos : start_pos + t] = k"
    wrong = "keys[:, :, start_pos + 1 : start_pos + t] = k"
    target = edited("static_buffer.py:DecoderLM", right, wrong, tmp_path)
    with pytest.raises(Unclear, match="its first call with one raised"):
        attentest.adapted(target)


@pytest.mark.proof
def test_tokens_before_may_have_any_name(tmp_path: Path) -> None:
    source = (WILD / "static_buffer.py").read_text().replace("start_pos", "gone")
    (tmp_path / "static_buffer.py").write_text(source)
    backend = attentest.adapted(str(tmp_path / "static_buffer.py:DecoderLM"))
    assert not [one.message for one in judged(backend) if one.status.fails_run]


@pytest.mark.proof
def test_steps_of_another_number_of_tokens_are_a_question(tmp_path: Path) -> None:
    """A mistake of counting is not sure where an argument may hold the number."""
    source = (WILD / "static_buffer.py").read_text().replace("start_pos", "gone")
    wrong = source.replace("torch.arange(gone, gone + ids", "torch.arange(2 * gone, 2 * gone + ids")
    assert wrong != source
    (tmp_path / "static_buffer.py").write_text(wrong)
    with pytest.raises(Unclear, match="gone"):
        attentest.adapted(str(tmp_path / "static_buffer.py:DecoderLM"))


def called_by(name: str, folder: Path, *edits: tuple[str, str]) -> str:
    """Return the target of a model whose argument for a cache is called `name`, after `edits`."""
    source = (WILD / "nano_past.py").read_text()
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    (folder / "nano_past.py").write_text(source.replace("past_key_values", name))
    return f"{folder / 'nano_past.py'}:GPT"


@pytest.mark.proof
def test_argument_with_a_word_for_caches_is_continued(tmp_path: Path) -> None:
    assert_conforms(called_by("past_kv_list", tmp_path), "cache=past_kv_list, begun without one")


@pytest.mark.proof
def test_mistake_in_a_cache_of_any_name_is_detected(tmp_path: Path) -> None:
    wrong = ("att = att.masked", "att = att if layer_past else att.masked")
    backend = attentest.adapted(called_by("layer_caches", tmp_path, wrong))
    bench = Bench.for_status(backend, effort=0.1)
    assert judge(bench, "language_model.cached-chunks").status.fails_run


def test_words_about_a_cache_are_no_cache() -> None:
    def none(
        use_cache=None, cache_position=None, past_len=None, kv_mask=None, skv=None,
        cached: bool | None = None, encoder_kv=None, num_cached=None, cache_ids=None,
    ): ...  # fmt: skip

    def several(x, layer_kvs=None, prev_cache: object | None = None): ...

    assert not caches_named(inspect.signature(none).parameters)
    assert caches_named(inspect.signature(several).parameters) == ["layer_kvs", "prev_cache"]
