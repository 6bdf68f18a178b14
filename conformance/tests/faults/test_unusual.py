"""The unusual but correct implementations: the suite reports nothing on any of them."""

import pytest
from proof import share

from attentest.faults.unusual import UNUSUAL
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec.clauses import clauses


@pytest.mark.proof
@share(25, rest=24)
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_implementation_raises_no_alarm(name: str) -> None:
    backend = UNUSUAL[name]
    bench = Bench.for_status(backend)
    slugs = [slug for slug, one in clauses().items() if one.component in backend.components]
    verdicts = [judge(bench, slug) for slug in slugs]
    alarms = [one for one in verdicts if one.status not in ("pass", "deviation", "absent")]
    assert not alarms, "\n".join(f"{one.clause}: {one.status}: {one.message}" for one in alarms)
    absent = [one.clause for one in verdicts if one.status == "absent"]
    assert 2 * len(absent) <= len(slugs), absent


def test_unusual_implementations_have_different_titles() -> None:
    titles = {backend.title for backend in UNUSUAL.values()}
    assert len(UNUSUAL) == len(titles) >= 20
