import pytest

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.zoo import ZOO
from attentest_spec.clauses import clauses


@pytest.mark.parametrize("name", ZOO)
def test_a_sound_implementation_raises_no_alarm(name: str) -> None:
    backend = ZOO[name]
    bench = Bench(backend, shrink=False, diagnose=False)
    slugs = [slug for slug, one in clauses().items() if one.component in backend.components]
    verdicts = [judge(bench, slug) for slug in slugs]
    alarms = [one for one in verdicts if one.status not in ("pass", "deviation", "absent")]
    assert not alarms, "\n".join(f"{one.clause}: {one.status}: {one.message}" for one in alarms)
    absent = [one.clause for one in verdicts if one.status == "absent"]
    assert 2 * len(absent) <= len(slugs), absent


def test_names_and_oddities_are_unlike() -> None:
    titles = {backend.title for backend in ZOO.values()}
    assert len(ZOO) == len(titles) >= 20
