"""The pytest plugin: `pytest --pyargs attentest.suite --backend NAME`.

Imports neither torch nor the suite until a test asks for a backend.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from attentest.bench import Bench


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the suite."""
    group = parser.getgroup("attentest", "conformance of Transformer implementations")
    group.addoption(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="backend to judge: a name, FILE.py:OBJECT or MODULE:OBJECT (repeatable; all installed "
        "ones by default)",
    )
    group.addoption("--attentest-dtype", default="float64", help="precision to judge in")
    group.addoption("--attentest-device", default="cpu", help="device to judge on")
    group.addoption("--attentest-seed", type=int, default=0, help="seed of all drawn inputs")
    parser.addini(
        "attentest_backend",
        "backends to judge where --backend is not given",
        type="args",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an unknown backend in one line, before anything is collected."""
    config.addinivalue_line("markers", "clause(slug): the clause of the spec that a test judges")
    named = _named(config)
    if not named:
        return
    from attentest_spec import UnknownName, registry
    from attentest_spec.names import require

    try:
        for target in named:
            if ":" not in target and not target.endswith(".py"):
                require("backend", target, registry.names())
    except UnknownName as unknown:
        raise pytest.UsageError(str(unknown)) from unknown


def _named(config: pytest.Config) -> list[str]:
    named: list[str] = config.getoption("--backend") or config.getini("attentest_backend")
    return list(dict.fromkeys(named))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every check of the suite once per backend."""
    if hasattr(metafunc.function, "clause") and "backend" in metafunc.fixturenames:
        from attentest_spec import registry

        targets = _named(metafunc.config) or registry.names()
        metafunc.parametrize("backend", targets, indirect=True, scope="session")


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> "Bench":
    """Return the backend under judgement with the settings of the run."""
    from attentest import targets
    from attentest.bench import Bench
    from attentest_spec.registry import LoadFailure

    target = str(request.param)
    try:
        loaded = targets.load(target)
    except LoadFailure as failure:
        pytest.fail(str(failure), pytrace=False)
    option = request.config.getoption
    return Bench(
        loaded,
        precision=option("--attentest-dtype"),
        device=option("--attentest-device"),
        seed=option("--attentest-seed"),
        loader=targets.loader(target),
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every check with its clause, so that `-m` and reports can use it."""
    for item in items:
        clause = getattr(getattr(item, "function", None), "clause", None)
        if clause:
            item.add_marker(pytest.mark.clause(clause))
