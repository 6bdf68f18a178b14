"""Reproductions of inferred code: they run without the suite and print what was judged."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec.clauses import clauses

WILD = Path(__file__).parents[1] / "support" / "wild"

RUNNER = """
import json, os, sys, tempfile, traceback

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("attentest", "attentest_spec"):
            raise ImportError(f"{name} is not there")

sys.meta_path.insert(0, Blocked())
import torch

answers = []
for code in json.load(sys.stdin):
    with tempfile.TemporaryFile("w+") as told:
        if not (child := os.fork()):
            os.dup2(told.fileno(), 1)
            os.dup2(told.fileno(), 2)
            status = 0
            try:
                exec(code, {"__name__": "__main__"})
            except BaseException:
                traceback.print_exc()
                status = 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitpid(child, 0)[1]
        told.seek(0)
        answers.append([status, told.read()])
json.dump(answers, sys.stdout)
"""


def run(codes: Sequence[str]) -> list[tuple[bool, str]]:
    """Return of each of `codes` whether it ran without the suite, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [(status == 0, text) for status, text in json.loads(done.stdout)]


NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)"


def numbers(text: str) -> np.ndarray:
    text = re.sub(r"dtype=[\w.]+|True|False", lambda one: str(int(one[0] == "True")), text)
    return np.array([float(one) for one in re.findall(NUMBER, text)])


def holds(text: str, wanted: Any) -> bool:
    """Say whether the numbers of `wanted` stand in `text` one after the other."""
    found, flat = numbers(text), np.asarray(wanted, dtype=float).ravel()
    if len(found) < len(flat):
        return False
    windows = np.lib.stride_tricks.sliding_window_view(found, len(flat))
    return bool(np.isclose(windows, flat, rtol=1e-5, atol=2e-6, equal_nan=True).all(-1).any())


MISTAKES = [
    ("attention_without_scale", "attention.formula"),
    ("attention_inverting_one_head", "attention.masked-keys-ignored"),
    ("attention_ignoring_the_mask", "attention.masked-keys-ignored"),
    ("attention_over_queries", "attention.formula"),
    ("attention_telling_other_weights", "attention.weights-used"),
    ("attention_masking_after", "attention.rows-sum-to-one"),
    ("attention_hiding_what_is_kept", "attention.masked-keys-ignored"),
    ("MultiHeadAttentionMerged", "multi_head_attention.query-order"),
    ("MultiHeadAttentionUnscaled", "multi_head_attention.formula"),
    ("MultiHeadAttentionDeaf", "multi_head_attention.masked-keys-ignored"),
    ("MHAInverted", "multi_head_attention.masked-keys-ignored"),
    ("MultiHeadAttentionAcross", "multi_head_attention.formula"),
    ("CausalSelfAttention", "multi_head_attention.formula"),
    ("SelfAttentionMaskingQueries", "multi_head_attention.masked-keys-ignored"),
    ("FeedForward", "feed_forward.formula"),
    ("Embeddings", "embedding.scale"),
    ("EncoderLayer", "encoder.layer-formula"),
    ("DecoderLayer", "decoder.layer-formula"),
]


def test_a_mistake_is_reproduced_without_the_suite() -> None:
    verdicts = []
    for name, clause in MISTAKES:
        backend = attentest.adapted(str(WILD / f"broken.py:{name}"), clauses()[clause].component)
        verdicts.append(judge(Bench(backend, diagnose=False), clause))
    witnesses = [one.witness for one in verdicts if one.witness is not None]
    assert len(witnesses) == len(MISTAKES)
    told = run([one.code for one in witnesses])
    for (name, clause), verdict, witness, (ran, text) in zip(
        MISTAKES, verdicts, witnesses, told, strict=True
    ):
        where = f"{name} {clause}\n{verdict.message}\n{witness}\n{text}"
        if verdict.status == "error":
            assert not ran, where
            assert verdict.message.partition("(")[0].split()[-1].strip(".") in text, where
        else:
            assert ran, where
            if "..." not in witness.actual:
                assert holds(text, numbers(witness.actual)), where
