"""Caches of models that count the tokens in them, and forget them by a method."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from test_caches_held_by_models import SWITCHED

COUNTED = edited(
    SWITCHED,
    ("self.heads, self.kept = heads, None", "self.heads = heads"),
    ("def forward(self, x, caching):", "def forward(self, x, cache, layer):"),
    ("        if caching:\n", "        if cache is not None:\n"),
    ("            if self.kept is not None:", "            if cache[layer] is not None:"),
    ("in zip(self.kept, (k, v)))", "in zip(cache[layer], (k, v)))"),
    ("self.kept = k, v", "cache[layer] = k, v"),
    (
        "        for one in self.attention:\n            one.kept = None\n",
        "        self.position = 0\n",
    ),
    ("bias=False)\n\n    def clear", "bias=False)\n        self.position = 0\n\n    def clear"),
    ("labels=None, caching=False", "cache=None"),
    (
        "        kept = self.attention[0].kept if caching else None\n"
        "        first = 0 if kept is None else kept[0].shape[2]\n",
        "        first = 0 if cache is None else self.position\n"
        "        if cache is not None:\n"
        "            self.position += ids.shape[1]\n",
    ),
    (
        "attention(self.norms[2 * number](x), caching)",
        "attention(self.norms[2 * number](x), cache, number)",
    ),
    (
        "        if labels is None:\n            return logits[:, [-1]], None\n"
        "        return logits, F.cross_entropy(logits.flatten(0, 1), labels.view(-1))\n",
        "        return logits\n",
    ),
)
OF_TEXTS = tuple(
    f"language_model.cached-{one}"
    for one in ("formula", "chunks", "reset", "own-cache", "sessions", "batch")
)


def test_count_is_emptied_by_the_method_of_the_model(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TinyGPT", COUNTED)
    assert "emptied by model.clear_cache()" in "\n".join(backend.understood)
    assert backend.choices["cache_sessions"] == "one"
    assert broken(backend, *OF_TEXTS) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("        self.position = 0\n\n    def forward", "        pass\n\n    def forward"),
        ("self.position += ids", "self.position = ids"),
    ],
)
def test_count_that_is_wrong_is_no_pass(right: str, wrong: str, tmp_path: Path) -> None:
    assert asked_or_broken(tmp_path, "TinyGPT", COUNTED, right, wrong, *OF_TEXTS)


def test_method_that_is_not_needed_is_not_called(tmp_path: Path) -> None:
    of_cache = "(0 if cache[0] is None else cache[0][0].shape[2])"
    code = edited(COUNTED, ("cache is None else self.position", f"cache is None else {of_cache}"))
    backend = adapted(tmp_path, "TinyGPT", code)
    assert "clear_cache" not in "\n".join(backend.understood)
    assert backend.choices["cache_sessions"] == "independent"
