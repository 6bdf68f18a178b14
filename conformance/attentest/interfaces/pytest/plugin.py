"""The pytest plugin: the clauses as tests, in a project of a user's own.

Imports neither torch nor the suite until there is something to judge.
"""

import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from functools import partial
from math import inf, nan
from typing import TYPE_CHECKING, cast

import pytest

from attentest.interfaces.pytest.settings import backends, clause_reports

if TYPE_CHECKING:
    from attentest.judging.bench import Bench

_PICK = re.compile(r"(?:\.\.?/)*(attentest::.+)")
_PICKED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the suite."""
    group = parser.getgroup("attentest", "conformance of Transformer implementations")
    group.addoption(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="what to judge: a name, FILE.py:OBJECT, MODULE:OBJECT, stdio:COMMAND (repeatable)",
    )
    group.addoption("--attentest-dtype", default="float64", help="precision to judge in")
    group.addoption("--attentest-device", default="cpu", help="device to judge on")
    group.addoption("--attentest-seed", type=int, default=0, help="seed of all drawn inputs")
    group.addoption(
        "--attentest-effort",
        type=_amount,
        default=1.0,
        metavar="FACTOR",
        help="factor on the number of examples",
    )
    group.addoption(
        "--attentest-strict",
        action="store_true",
        help="judge choices that code without an adapter does not declare by the paper's",
    )
    group.addoption(
        "--attentest-reproduce",
        default="",
        metavar="DIR",
        help="write a runnable file for each cause of a failure into this folder",
    )
    group.addoption(
        "--write-deviations",
        action="store_true",
        help="draft the file that attentest_deviations names from the failures of a full run",
    )
    ini = partial(parser.addini, type="args", default=[])
    ini("attentest_backend", "backends to judge where --backend is not given")
    ini("attentest_components", "components to judge (default: all)")
    parser.addini("attentest_deviations", "file with the expected failures")
    parser.addini("attentest_reproduce", "folder for a runnable file for each cause of a failure")


def _amount(text: str) -> float:
    """Return a factor above zero; ArgumentTypeError for any other text, as argparse wants it."""
    try:
        factor = float(text)
    except ValueError:
        factor = nan
    if not 0 < factor < inf:
        raise ArgumentTypeError(f"{text!r} is not a number above zero")
    return factor


def pytest_configure(config: pytest.Config) -> None:
    """Raise UsageError for settings that cannot be used, before anything is collected."""
    config.addinivalue_line("markers", "clause(slug): the clause of the spec that a test judges")
    picked = [match[1] for match in map(_PICK.fullmatch, config.args) if match]
    config.stash[_PICKED] = picked
    config.args = [word for word in config.args if not _PICK.fullmatch(word)]
    named = backends(config)
    if picked and not named:
        raise pytest.UsageError(
            f"{picked[0]} asks for a clause, and there is nothing to judge. Name it by --backend, "
            f"or by the line attentest_backend in the settings of pytest."
        )
    if named or config.getini("attentest_deviations") or config.getoption("--write-deviations"):
        from attentest.interfaces.pytest.session import prepare

        prepare(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every check of the suite once per backend."""
    if hasattr(metafunc.function, "clause") and "backend" in metafunc.fixturenames:
        named = list(backends(metafunc.config)) or _installed(metafunc.config)
        metafunc.parametrize("backend", named, indirect=True, scope="session")


_INSTALLED = pytest.StashKey[list[str]]()


def _installed(config: pytest.Config) -> list[str]:
    """Return the installed backends, which are looked for once: every check asks for them."""
    from attentest_spec import registry

    if _INSTALLED not in config.stash:
        config.stash[_INSTALLED] = registry.installed()
    return config.stash[_INSTALLED]


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> "Bench":
    """Return the backend with the settings of the run."""
    from attentest.interfaces.pytest.items import bench_of
    from attentest_spec.registry import LoadFailure

    name = str(request.param)
    try:
        return bench_of(request.config, backends(request.config).get(name, name))
    except LoadFailure as failure:
        pytest.fail(str(failure), pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """End a check of the suite as its clause ends where it is collected by itself."""
    slug = getattr(pyfuncitem.function, "clause", None)
    if not slug:
        return None
    from attentest.interfaces.pytest.items import conclude
    from attentest.judging.bench import Bench
    from attentest.judging.judge import judge

    bench = Bench.of(cast("Bench", pyfuncitem.funcargs["backend"]))
    conclude(pyfuncitem, judge(bench, slug), str(pyfuncitem.callspec.params["backend"]))
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the clauses where a backend is named and no path is; mark every check with its clause.

    This comes first, so that `-k`, `-m` and `--lf` see the clauses too.
    """
    for item in items:
        if slug := getattr(getattr(item, "function", None), "clause", None):
            item.add_marker(pytest.mark.clause(slug))
    picked = config.stash[_PICKED]
    if picked:
        items += _picked(_clauses(session), picked)
    elif config.args_source is not pytest.Config.ArgsSource.ARGS:
        items += _clauses(session)


def _clauses(session: pytest.Session) -> list[pytest.Item]:
    named = backends(session.config)
    if not named:
        return []
    from attentest.interfaces.pytest.items import Clauses
    from attentest.interfaces.pytest.session import slugs

    chosen = slugs(session.config)
    nodes = [
        Clauses.from_parent(session, name=name, nodeid="attentest", target=target, slugs=chosen)
        for name, target in named.items()
    ]
    return [item for node in nodes for item in session.genitems(node)]


def _picked(items: Sequence[pytest.Item], picked: Sequence[str]) -> list[pytest.Item]:
    """Return those of `items` that are picked, with the name of a backend or without."""

    def meant(item: pytest.Item, pick: str) -> bool:
        return item.nodeid == pick or item.nodeid.startswith(f"{pick}[")

    missing = [pick for pick in picked if not any(meant(item, pick) for item in items)]
    if missing:
        raise pytest.UsageError(f"There is no clause {missing[0]}; see attentest list clauses.")
    return [item for item in items if any(meant(item, pick) for pick in picked)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Draft the expected failures, where that was asked for."""
    if session.config.getoption("--write-deviations"):
        from attentest.interfaces.pytest.session import write

        write(session)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print a line of summary for every backend."""
    if clause_reports(terminalreporter) or config.getoption("--write-deviations"):
        from attentest.interfaces.pytest.session import summarise

        summarise(terminalreporter, config)
