"""Measures how many settings of decoder-only models their outputs show.

`python identification.py` draws 25 models (`--models`) for each of three seeds (`--seeds`), with
several settings that differ from Llama's, and with usual numbers and others. Nothing is declared.
It prints every setting that is measured wrong or fits no option, and for each seed the number of
models without one. `--changes` measures instead single
changes of one model, and whether a comparison names the change.
"""

import random
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from planted import BASE, CHANGES
from reference_backends import built, sole

from attentest.analysis.identify import NONE_FITS, identify
from attentest.analysis.identify.finding import Finding, same
from attentest.analysis.identify.language import AXES
from attentest.studies.comparison.compare import compare
from attentest_spec import Choices
from attentest_spec.choices import Value

MODELS = 25
"""The number of models that are drawn for a seed."""

Settings = dict[str, Value]


def drawn(seed: int, models: int) -> Iterator[Settings]:
    """Yield the settings of models: up to four changes, and numbers that are not usual."""
    rng = random.Random(seed)
    for _ in range(models):
        settings = dict(BASE)
        for name in rng.sample(list(CHANGES), rng.randint(1, 4)):
            settings |= CHANGES[name]
        if rng.random() < 0.5:
            settings["rms_epsilon"] = settings["norm_epsilon"] = rng.choice((1e-6, 1e-8, 3e-7))
        if rng.random() < 0.3 and settings["attention_rotary"] != "none":
            settings["rotary_base"] = round(10 ** rng.uniform(3.5, 6.5))
        if rng.random() < 0.3:
            settings["score_scale"] = round(rng.uniform(0.05, 1.0), 3)
        if rng.random() < 0.3:
            settings["logit_cap"] = round(rng.uniform(5.0, 60.0), 1)
        yield settings


def wrong(found: dict[str, Finding], settings: Settings) -> list[str]:
    """Return the settings that are measured wrong, or fit no option."""
    truth = Choices.of(settings)
    return [
        f"{name}: is {truth[name]}, {found[name].measured} ({found[name].reason})"
        for name in AXES
        if found[name].status == NONE_FITS
        or (found[name].measured is not None and not same(found[name].measured, truth[name]))
    ]


@click.command()
@click.option("--seeds", default=3, show_default=True, help="How many seeds, from 0 on.")
@click.option("--models", default=MODELS, show_default=True, help="How many models for a seed.")
@click.option("--changes", is_flag=True, help="Compare a model with each of its single changes.")
def main(seeds: int, models: int, *, changes: bool) -> None:
    """Print what is not measured, and the shares."""
    if changes:
        _compare_changes()
        return
    for seed in range(seeds):
        good, start = 0, time.process_time()
        for number, settings in enumerate(drawn(seed, models)):
            model = ("plain", "fused")[number % 2]
            backend = sole(built(model, settings), "language_model")
            lines = wrong(identify(replace(backend, choices={})), settings)
            good += not lines
            changed = {name: one for name, one in settings.items() if BASE.get(name) != one}
            for line in lines[:3]:
                click.echo(f"seed {seed}, model {number} with {changed}: {line}")
        seconds = (time.process_time() - start) / models
        click.echo(f"seed {seed}: {good} of {models} models, {seconds:.1f} s of CPU each")


def _compare_changes() -> None:
    good = 0
    single = [name for name, one in CHANGES.items() if len(one) == 1]
    for name in single:
        pair = [
            replace(sole(built(model, {**BASE, **change}), "language_model"), choices=BASE)
            for model, change in (("plain", {}), ("fused", CHANGES[name]))
        ]
        named = [replace(one, name=letter) for one, letter in zip(pair, "ab", strict=True)]
        options = [one.choice for one in compare(*named).explanations[0].options]
        good += options == list(CHANGES[name])
        click.echo(f"{name}: {', '.join(options) or 'not explained'}")
    click.echo(f"{good} of {len(single)} changes are named")


if __name__ == "__main__":
    main()
