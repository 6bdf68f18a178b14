"""A backend that lives in JAX alone is judged where there is no torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

NO_TORCH = "import sys\nsys.modules['torch'] = None\n"
BACKEND = """
import jax.numpy as jnp
from jax.nn import softmax
from attentest_spec.jax import JaxBackend, Recipe


def attend(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) {scale}
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    weights = softmax(scores)
    return weights @ value, weights


backend = JaxBackend(
    name="alone",
    title="attention in JAX",
    recipes={{"attention": Recipe(build=lambda sizes, dtype: attend)}},
)
"""


def judged(folder: Path, scale: str) -> subprocess.CompletedProcess[str]:
    """Judge attention, in an interpreter that finds no torch."""
    (folder / "sitecustomize.py").write_text(NO_TORCH, encoding="utf-8")
    (folder / "alone.py").write_text(BACKEND.format(scale=scale), encoding="utf-8")
    words = ["--clause", "attention.formula", "--clause", "attention.gradient", "--effort", "0.2"]
    inherited = filter(None, [os.environ.get("PYTHONPATH")])
    return subprocess.run(
        [sys.executable, "-m", "attentest", "run", "alone.py", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *inherited])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_sound_one_conforms(tmp_path: Path) -> None:
    ran = judged(tmp_path, "/ query.shape[-1] ** 0.5")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "alone.py: 2 of 2 judged clauses conform" in ran.stdout


def test_a_mistake_is_told(tmp_path: Path) -> None:
    ran = judged(tmp_path, "")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "breaks attention.formula: " in ran.stdout
    assert "1 of 2 judged clauses conform" in ran.stdout
