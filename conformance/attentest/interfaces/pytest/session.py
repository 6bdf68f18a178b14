"""A pytest session: the clauses it judges, its summary, and drafts of expected failures."""

from collections.abc import Mapping, Sequence

import pytest

from attentest.interfaces.pytest.items import EXPECTED, OWN, expected, planned, verdicts
from attentest.interfaces.pytest.settings import backends, clause_reports, expected_file
from attentest.results import expected_failures
from attentest.results.blocks import block
from attentest.results.causes import causes
from attentest.results.expected_failures import ExpectedFailure, UnusableFile
from attentest.results.plan import Plan, select
from attentest.results.run import BackendRun
from attentest.results.text import counted
from attentest.results.verdict import Verdict
from attentest.results.wording import summary, uncompared
from attentest.targets import paper
from attentest.targets.resolve import is_name
from attentest_spec import UnknownName, registry
from attentest_spec.clauses import clauses
from attentest_spec.registry import LoadFailure

_OUTCOME = pytest.StashKey[str]()


def prepare(config: pytest.Config) -> None:
    """Read the names and the expected failures; raise UsageError where they cannot be used."""
    try:
        for target in backends(config):
            _available(target)
        config.stash[EXPECTED] = _expected(config, slugs(config))
    except (UnknownName, LoadFailure, UnusableFile) as wrong:
        raise pytest.UsageError(*str(wrong).splitlines()) from wrong


def _available(target: str) -> None:
    """Raise UsageError for a name that is no backend's, or whose library is not installed.

    Raises UnknownName and LoadFailure for design choices that cannot be built.
    """
    if paper.is_paper(target):
        paper.choices_of(target)
    if is_name(target) and (command := registry.install_command(target)):
        raise pytest.UsageError(f"The backend {target} is not installed; install it: {command}")


def slugs(config: pytest.Config) -> tuple[str, ...]:
    """Return the clauses that a full run judges.

    Raises UnknownName for a component or a precision that is none.
    """
    precision = config.getoption("--attentest-dtype")
    return select(config.getini("attentest_components"), precision=precision)


def _expected(config: pytest.Config, chosen: Sequence[str]) -> tuple[ExpectedFailure, ...]:
    file = expected_file(config)
    if config.getoption("--write-deviations"):
        if file is None:
            raise pytest.UsageError(
                "--write-deviations drafts the file that the settings name, and they name none. "
                'Add the line: attentest_deviations = "deviations.toml"'
            )
        if not file.exists():
            return ()
    known = [*backends(config), *config.getini("attentest_backend"), *registry.names()]
    return expected_failures.read(file, known, chosen) if file else ()


def write(session: pytest.Session) -> None:
    """Draft the expected failures from a full run; refuse after a partial one."""
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or reporter is None:
        return  # a process that runs tests for another one, which gets their reports
    found = _found(reporter, config)
    if lacking := _lacking(config, found, _own(reporter)):
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
        config.stash[_OUTCOME] = (
            f"No expected failures were drafted: this was a partial run, {lacking}, and what it "
            f"did not judge would be missing. Run pytest without -k, -m, --lf, -x and paths."
        )
        return
    config.stash[_OUTCOME] = _drafted(config, found)


def _lacking(
    config: pytest.Config, found: Sequence[Verdict], own: Mapping[str, Sequence[str]]
) -> str:
    """Return what a full run would have judged besides, "" where there is nothing."""
    wanted = {
        (name, slug)
        for name in backends(config)
        for slug in planned(slugs(config), own.get(name, ()))
    }
    if not wanted:
        return "with no backend named in the settings"
    missing = wanted - {(one.backend, one.clause) for one in found}
    return f"{len(missing)} of {len(wanted)} verdicts short" if missing else ""


def _drafted(config: pytest.Config, found: Sequence[Verdict]) -> str:
    """Write the file where there is none, and return the message for the user."""
    file = expected_file(config)
    assert file is not None  # it was asked for before anything was judged
    new = expected_failures.unexpected(expected(config), found)
    if not new:
        return f"Nothing is left to declare, and {file.name} was not written."
    text = expected_failures.draft(new)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        return f"{file.name} exists and was left as it is. It lacks:\n\n{text}"
    except OSError as failure:
        return f"{file} cannot be written ({failure.strerror}). It would hold:\n\n{text}"
    entries = counted(len(new), "entry", "entries")
    return (
        f"{file.name} was written with {entries}. Fill in each owner, reason and link: as long as "
        f"one says TODO, the run fails."
    )


def summarise(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print a line of summary for every backend, and what was drafted."""
    found = _found(reporter, config)
    outcome = config.stash.get(_OUTCOME, "")
    if not found and not outcome:
        return
    reporter.section("attentest")
    for name in dict.fromkeys(verdict.backend for verdict in found):
        mine = [one for one in found if one.backend == name]
        for line in _lines(name, mine, _own(reporter).get(name, ()), config):
            reporter.line(line)
    if outcome:
        reporter.line(outcome)


def _own(reporter: pytest.TerminalReporter) -> dict[str, list[str]]:
    """Return the components that the clauses of each backend are about, none for every one."""
    properties = (dict(report.user_properties) for report in clause_reports(reporter))
    return {str(one["backend"]): str(one.get(OWN, "")).split() for one in properties}


def _lines(name: str, found: list[Verdict], own: Sequence[str], config: pytest.Config) -> list[str]:
    chosen = planned(slugs(config), own)
    if not {one.clause for one in found} <= set(chosen):  # a path was named on the command line
        chosen = select()
    known = sum(one.confirmed(verdict) for verdict in found for one in expected(config))
    file = expected_file(config)
    tail = f"; {known} declared in {file.name}" if file and known else ""
    backend = BackendRun(name, verdicts=found)
    new = expected_failures.unexpected(expected(config), found)
    blocks = (block(cause, number) for number, cause in enumerate(causes(new), 1))
    words = [line for one in blocks for line in [*one.splitlines(), ""]]
    return [*words, summary(backend, Plan(chosen)) + tail, *uncompared(backend)]


def _found(reporter: pytest.TerminalReporter, config: pytest.Config) -> list[Verdict]:
    """Return the verdicts of the session in the order of the clauses, whoever came first."""
    order = {slug: place for place, slug in enumerate(clauses())}
    found = verdicts(clause_reports(reporter))
    return sorted(found, key=lambda one: (one.backend, order[one.clause]))
