"""Runs and results for the tests of the report, written as the commands would write them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attentest.results import files, stream
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Description, Run
from attentest.results.verdict import Counterexample, LikelyCause, Location, Verdict
from attentest.studies.index.evidence import Evidence
from attentest_spec import CHOICES
from attentest_spec.clauses import clauses

SLUGS = ("masks.any-pad-id", "attention.formula", "attention.one-key", "encoder.norm-placement")

HOSTILE = (
    '"><img src=x onerror=alert(1)><script>alert(2)</script></script><!-- \u202e\ud800 $x_$ &amp;'
)
"""A text that tries to be anything but a text."""

LIKE = LikelyCause("fault", ("attention.scale-missing",), "scores are not scaled", 1e-13)
EXAMPLE = Counterexample(
    ("build attention", "call it"), "import numpy\nprint(1 < 2)", "[1.0]", "[2.0]"
)


def judged(
    name: str, found: Mapping[str, str], *, message: str = "It differs by 0.5.", failure: str = ""
) -> BackendRun:
    """Return a backend with the status of each clause in `found`."""
    description = Description(
        title=f"the backend {name}",
        components=tuple(dict.fromkeys(clauses()[slug].component for slug in (*SLUGS, *found))),
        choices={"norm_placement": "pre", "norm_epsilon": 1e-5},
    )
    verdicts = [_verdict(name, slug, status, message) for slug, status in found.items()]
    shown = Description() if failure else description
    return BackendRun(name, shown, verdicts, {"dropout sites": "none"}, failure)


def _verdict(name: str, slug: str, status: str, message: str) -> Verdict:
    if status in ("pass", "deviation"):
        return Verdict(name, slug, status, budget=0.25, seconds=0.1)
    if status == "absent":
        return Verdict(name, slug, status, f"{name} provides none")
    return Verdict(name, slug, status, message, ("a note",), EXAMPLE, (LIKE,), None, 0.1)


def written(path: Path, *backends: BackendRun, slugs: Sequence[str] = SLUGS, seed: int = 0) -> Path:
    """Write the stream of a run of `backends`."""
    return _ascii(path, stream.text(Run.of(Plan(tuple(slugs), seed=seed), backends)))


def _ascii(path: Path, text: str) -> Path:
    """Write JSON lines with escapes: so a file can hold half a character, and ours cannot."""
    rows = text.removesuffix("\n").split("\n")
    path.write_text("".join(json.dumps(json.loads(row)) + "\n" for row in rows))
    return path


def all_of(status: str, slugs: Sequence[str] = SLUGS) -> dict[str, str]:
    """Return the same status for every clause."""
    return dict.fromkeys(slugs, status)


def mixed() -> list[BackendRun]:
    """Return backends with a verdict of nearly every status, one that was not loaded among them."""
    return [
        judged("good", all_of("pass") | {"encoder.norm-placement": "deviation"}),
        judged("bad", dict(zip(SLUGS, ("warning", "violation", "error", "absent"), strict=True))),
        judged("worse", dict(zip(SLUGS, ("timeout", "crash", "suite-bug", "pass"), strict=True))),
        judged("away", {}, failure="There is no file away."),
    ]


def caused() -> list[BackendRun]:
    """Return a backend that conforms, and one with two causes: a line that is known, an error."""
    line = Location(
        "model.py",
        7,
        "weights = scores.softmax(-1)",
        "scaled scores",
        "scores / sqrt(d_k), where sqrt(d_k) = 2.83",
        "the product of query and key, unchanged",
        confirmed=True,
    )
    slugs = ("attention.formula", "attention.one-key", "attention.fully-masked-row")
    wrong = judged("unscaled", all_of("violation", slugs) | {SLUGS[0]: "error"})
    verdicts = [
        replace(one, location=line) if one.status == "violation" else one for one in wrong.verdicts
    ]
    return [
        judged("good", all_of("pass", [one.clause for one in verdicts])),
        replace(wrong, verdicts=verdicts),
    ]


def comparison(first: str = "good", other: str = "bad") -> dict[str, Any]:
    """Return what a comparison of two backends tells, as plain values."""
    parting = {"step": "encoder.layers.0.self_attention", "inside": True, "difference": 0.5}
    return {
        "backends": [first, other],
        "choices": [_choice_row(name) for name in list(CHOICES)[:2]],
        "components": ["model"],
        "steps": [_step("source_embedding", 0.0), _step(str(parting["step"]), 0.5)],
        "own": [{"step": "", "inside": False, "difference": 1e-15}] * 2,
        "explanations": [
            {
                "first": first,
                "other": other,
                "status": "explained",
                "parting": parting,
                "options": [{"choice": "norm_placement", "first": "pre", "other": "post"}],
                "silent": [],
                "left": 1e-13,
                "astray": None,
            }
        ],
        "notes": ["One layer."],
        "failures": [],
        "pictures": pictures(first) + pictures(other),
        "explained": True,
    }


def _choice_row(name: str) -> dict[str, Any]:
    choice = CHOICES[name]
    values = [option.name for option in choice.options][:2]
    return {
        "choice": name,
        "findings": [_finding(name, value) for value in values],
        "values": values,
        "differs": True,
        "paper": choice.paper,
        "why": choice.why,
        "clause": choice.clause,
    }


def _finding(name: str, value: str) -> dict[str, Any]:
    return {
        "choice": name,
        "declared": value,
        "measured": value,
        "status": "measured",
        "reason": "",
        "difference": 0.0,
        "components": ["encoder_layer"],
        "tolerance": 1e-6,
    }


def _step(name: str, difference: float) -> dict[str, Any]:
    shapes = [[2, 3, 8]] * 2
    return {"step": name, "shapes": shapes, "outputs": [difference], "inputs": [0.0]}


def pictures(backend: str) -> list[dict[str, Any]]:
    """Return a picture of each kind."""
    causal = [[float(row >= column) for column in range(4)] for row in range(4)]
    return [
        _picture(backend, "attention", "head 1", [[0.25, 0.75], [1.0, 0.0]]),
        _picture(backend, "mask", "causal", causal),
        _picture(backend, "positions", "sine and cosine", [[0.0, 1.0], [0.84, -0.54]]),
    ]


def _picture(backend: str, kind: str, title: str, values: list[list[float]]) -> dict[str, Any]:
    rows, columns = len(values), len(values[0])
    return {
        "backend": backend,
        "kind": kind,
        "title": title,
        "values": values,
        "rows": [f"query {row}" for row in range(rows)],
        "columns": [f"key {column}" for column in range(columns)],
    }


def learning(*backends: str) -> dict[str, Any]:
    """Return what training tells, as plain values."""
    points = [
        {"step": step, "training": None, "validation": loss, "tokens": 0.5, "sequences": 0.25}
        for step, loss in ((0, 2.5), (10, 0.5))
    ]
    curves = [
        {"backend": name, "seed": 0, "points": points, "seconds": 1.0, "cpu_seconds": 1.0}
        for name in backends
    ]
    return {
        "regime": {"task": "copy", "steps": 10},
        "seeds": [0],
        "parameters": dict.fromkeys(backends, 1234),
        "choices": {},
        "curves": curves,
        "notes": ["All start from the same weights."],
        "failures": [],
        "backends": list(backends),
    }


def sweep(name: str = "norm_placement") -> dict[str, Any]:
    """Return a sweep over one factor and 10 seeds, as plain values."""
    effect = {
        "measure": "validation",
        "levels": {name: "pre"},
        "base": {name: "post"},
        "difference": 0.5,
        "low": 0.25,
        "high": 0.75,
        "seeds": 10,
        "pairs": 10,
    }
    trainings = [
        {name: level, "seed": seed, "validation": 0.5, "tokens": 0.75, "sequences": 0.25}
        for level in ("post", "pre")
        for seed in range(10)
    ]
    return {
        "target": "paper",
        "factors": {name: ["post", "pre"]},
        "seeds": list(range(10)),
        "trainings": [{**one, "reason": ""} for one in trainings],
        "effects": [{**effect, "measure": one} for one in ("validation", "tokens", "sequences")],
        "interactions": [],
    }


def index(wrong: str = "The scores are not scaled.") -> dict[str, Any]:
    """Return the silent-bug index of 20 mistakes on one task, as plain values."""
    kinds = ("training loss", "nothing")
    counts = dict.fromkeys(map(str, Evidence), 0) | dict.fromkeys(kinds, 10)
    mistakes = [
        {
            "fault": f"attention.mistake-{number}",
            "component": "attention" if number < 15 else "layer_norm",
            "wrong": wrong,
            "evidence": kinds[number % 2],
            "copy": kinds[number % 2],
        }
        for number in range(20)
    ]
    return {
        "tasks": ["copy"],
        "seeds": [0, 1, 2],
        "population": 1000,
        "outside": 500,
        "counts": counts,
        "by_task": {"copy": counts},
        "mistakes": mistakes,
    }


def cost(*backends: str) -> dict[str, Any]:
    """Return what was measured of cost, as plain values."""
    spread = {"median": 0.002, "low": 0.001, "high": 0.004}
    measurements = [
        {
            "backend": name,
            "length": length,
            "width": width,
            "which": which,
            "seconds": spread,
            "ratio": {"median": 1.0, "low": 1.0, "high": 1.0},
            "speed": None,
            "memory": dict.fromkeys(spread, 2**20 * length),
            "flops": 10**6 * length,
            "counted": None,
        }
        for name in backends
        for length, width in ((16, 8), (32, 8), (16, 16))
        for which in ("forward", "forward and backward")
    ]
    growth = {"over": "length", "which": "forward", "quantity": "time", "exponent": 1.5}
    more = {"error": None, "terms": None, "shares": None}
    layer = {"layer": "self-attention", "complexity": "n^2 d", "operations": 8192}
    steps = {"sequential": "1", "steps": 1, "path": "1", "longest": 1}
    sweeps = {"lengths": [16, 32], "widths": [8, 16], "length": 16, "width": 8}
    return {
        "plan": {"component": "model", "notes": ["One thread."], "repeat": 3, **sweeps},
        "backends": list(backends),
        "parameters": [
            {"backend": name, "width": 8, "counted": 100, "expected": 100} for name in backends
        ],
        "measurements": measurements,
        "growths": [{"backend": name, **growth, **more} for name in backends],
        "layers": [{**layer, **steps}],
        "failures": [{"backend": "gone", "reason": "It took too long.", "loaded": True}],
    }


def result(path: Path, kind: str, content: Mapping[str, Any]) -> Path:
    """Write a result file."""
    return _ascii(path, files.text(kind, content))


def altered(path: Path, number: int, **changes: Any) -> Path:
    """Change fields of one line of a stream; a negative number counts from the end."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[number] = json.dumps({**json.loads(lines[number]), **changes})
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def many(count: int = 6) -> list[BackendRun]:
    """Return backends judged by every clause, some of them failing."""
    return [
        judged(f"backend-{number}", all_of("violation" if number == 5 else "pass", list(clauses())))
        for number in range(count)
    ]
