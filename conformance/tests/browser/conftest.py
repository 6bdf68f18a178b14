"""A page in headless chromium: what it logs and asks for is kept, and has to be nothing."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from report_cases import (
    HOSTILE,
    SLUGS,
    all_of,
    comparison,
    cost,
    index,
    judged,
    learning,
    mixed,
    result,
    sweep,
    written,
)
from report_cases import caused as caused_run

from attentest.views import html

NAMES = ("chromium", "chromium-browser", "google-chrome")

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.exit(
            "No chromium was found, and the report has to be looked at in one: "
            "apt-get install chromium",
            returncode=1,
        )
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield started
        started.close()


@dataclass
class Shown:
    """A page in the browser, and everything that it should not have done."""

    page: Page
    address: str
    trouble: list[str] = field(default_factory=list)

    def go(self, place: str = "") -> "Shown":
        """Open the page anew, at `place`."""
        self.page.goto("about:blank")
        self.page.goto(self.address + place)
        return self

    def visible(self) -> list[str]:
        """Return the clauses whose rows can be seen."""
        rows = self.page.locator("tr[data-c]:visible").all()
        return [str(row.get_attribute("data-c")) for row in rows]

    def at(self, place: str) -> bool:
        """Wait until the part of the address behind the file is `place`."""
        self.page.wait_for_function("place => location.hash === place", arg=place)
        return True


Open = Callable[..., Shown]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Open a file, with the options of a browser's context; in the end there is no trouble."""
    shown: list[Shown] = []

    def open_file(path: Path, place: str = "", **options: Any) -> Shown:
        settings = {"viewport": {"width": 1280, "height": 900}, **options}
        page = browser.new_context(**settings).new_page()
        page.set_default_timeout(5000)
        one = Shown(page, path.as_uri())
        page.on("console", lambda message: one.trouble.append(message.text))
        page.on("pageerror", lambda error: one.trouble.append(str(error)))
        page.on("dialog", lambda dialog: one.trouble.append(dialog.message))
        page.on("request", lambda asked: _asked(one, asked.url))
        shown.append(one)
        return one.go(place)

    yield open_file
    for one in shown:
        one.page.context.close()
    assert [one.trouble for one in shown] == [[]] * len(shown)


def _asked(shown: Shown, address: str) -> None:
    if address.partition("#")[0] != shown.address and address != "about:blank":
        shown.trouble.append(f"asked for {address}")


def _page(folder: Path, *paths: Path) -> Path:
    path = folder / "report.html"
    path.write_text(html.page(html.read(*paths)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every section and a verdict of every status."""
    folder = tmp_path_factory.mktemp("everything")
    return _page(
        folder,
        written(folder / "old.jsonl", judged("good", all_of("pass"))),
        written(folder / "new.jsonl", *mixed()),
        result(folder / "comparison.json", "comparison", comparison()),
        result(folder / "learning.json", "learning", learning("good", "bad")),
        result(folder / "cost.json", "cost", cost("good", "bad")),
        result(folder / "sweep.json", "sweep", sweep()),
        result(folder / "index.json", "index", index()),
    )


@pytest.fixture(scope="session")
def caused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a backend with two causes, one of them with its line, beside one that conforms."""
    folder = tmp_path_factory.mktemp("caused")
    run = caused_run()
    slugs = [one.clause for one in run[1].verdicts]
    return _page(folder, written(folder / "run.jsonl", *run, slugs=slugs))


@pytest.fixture(scope="session")
def mostly_right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with one row that needs attention, and three in which all pass or provide nothing."""
    folder = tmp_path_factory.mktemp("mostly_right")
    some = all_of("pass") | {SLUGS[1]: "violation", SLUGS[3]: "absent"}
    run = judged("one", some), judged("other", all_of("pass"))
    return _page(folder, written(folder / "run.jsonl", *run))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose every name and message tries to be more than a text."""
    folder = tmp_path_factory.mktemp("hostile")
    found = all_of("violation", SLUGS[:2])
    return _page(
        folder,
        written(folder / "run.jsonl", judged(HOSTILE, found, message=HOSTILE * 1100)),
        result(folder / "comparison.json", "comparison", comparison(HOSTILE, "\u2028'\"`${1}")),
        result(folder / "learning.json", "learning", learning(HOSTILE, "</svg>")),
        result(folder / "cost.json", "cost", cost(HOSTILE, "</svg>")),
    )
