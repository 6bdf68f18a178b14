"""Judges a module with the parameter map that was found for it."""

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.parameters import find_table
from attentest_spec import Limits
from attentest_spec.clauses import clauses as clauses_of_the_spec
from attentest_spec.torch import Recipe, TorchBackend


def direct(built, *inputs):
    return built(*inputs)


def judged(component, build, call=direct, choices=(), *, limits=None, clauses=(), methods=()):
    """Return what was found, and the verdicts of the clauses about numbers by their slug."""
    found = find_table(build, component, call)
    backend = TorchBackend(
        name="found",
        title="a module with the map that was found",
        recipes={component: Recipe(build, call, dict(methods), found.table)},
        choices={**found.choices, **dict(choices)},
        limits=limits or Limits(),
    )
    bench = Bench.for_status(backend, effort=0.2)
    return found, {slug: judge(bench, slug) for slug in clauses or about_numbers(component)}


def about_numbers(component):
    listed = clauses_of_the_spec().values()
    return [one.slug for one in listed if one.component == component and one.depth == "numbers"]


def conforms(found, verdicts):
    wrong = [one for one in verdicts.values() if one.status not in ("pass", "deviation", "absent")]
    told = "\n".join(f"{one.clause}: {one.status}: {one.message}" for one in wrong)
    assert not wrong, f"{told}\n{chr(10).join(found.lines)}\n{found.remarks}"
    absent = [slug for slug, one in verdicts.items() if one.status == "absent"]
    assert 3 * len(absent) <= len(verdicts), absent
    same_lines(found)


def same_lines(found):
    named = {}
    exec("\n".join(found.lines), named)
    assert named["PARAMETERS"] == found.table
