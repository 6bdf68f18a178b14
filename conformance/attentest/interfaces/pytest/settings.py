"""Settings and reports of a pytest session; imports nothing of the suite."""

from collections.abc import Mapping
from pathlib import Path

import pytest


def root(config: pytest.Config) -> Path:
    """Return the folder of the settings."""
    return config.inipath.parent if config.inipath else config.rootpath


def backends(config: pytest.Config) -> Mapping[str, str]:
    """Return the backends to judge as the user names them, each with the target to load.

    A file in the settings is looked for beside them, one on the command line from where one is.
    """
    named: list[str] = config.getoption("--backend")
    if named:
        return {target: target for target in named}
    return {target: _rooted(config, target) for target in config.getini("attentest_backend")}


def _rooted(config: pytest.Config, target: str) -> str:
    place = target.rpartition(":")[0] or target
    return str(root(config) / target) if place.endswith(".py") else target


def expected_file(config: pytest.Config) -> Path | None:
    """Return the file with the expected failures, None where none is named."""
    named: str = config.getini("attentest_deviations")
    return root(config) / named if named else None


def reproductions_folder(config: pytest.Config) -> Path | None:
    """Return the folder for reproductions, None where none is named."""
    named: str = config.getoption("--attentest-reproduce")
    if named:
        return Path(named)
    named = config.getini("attentest_reproduce")
    return root(config) / named if named else None


def clause_reports(reporter: pytest.TerminalReporter) -> list[pytest.TestReport]:
    """Return the reports of the clauses that were judged, here or in another process."""
    return [
        report
        for several in reporter.stats.values()
        for report in several
        if isinstance(report, pytest.TestReport)
        and report.when == "call"
        and "clause" in dict(report.user_properties)
    ]
