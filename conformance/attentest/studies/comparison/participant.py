"""A backend that is compared: its account, and a recording of what it does with an example."""

from collections.abc import Sequence
from dataclasses import astuple
from functools import partial
from typing import Any

from attentest.harness.errors import Absent, BackendError, Unavailable, Violation
from attentest.harness.messages import Event as Message
from attentest.harness.messages import Listener, Methods
from attentest.harness.process import Isolation
from attentest.results.text import summary
from attentest.studies.comparison.account import Account
from attentest.studies.comparison.example import Example
from attentest.studies.comparison.recording import Event, Place, Recording, record
from attentest.studies.participants import Local, Participant, Remote, ask, on_target
from attentest_spec import Backend, Choices


def local(backend: Backend) -> Local:
    """Return `backend` as a participant in this process."""
    return Local(methods(backend))


def remote(target: str, isolation: Isolation) -> Remote:
    """Return the backend of `target` as a participant in processes of its own."""
    return Remote(__name__, (target,), isolation)


def account(participant: Participant) -> Account:
    """Return what is known of a participant."""
    return ask(participant, "account", Account.from_dict)


def recording(
    participant: Participant, choices: Choices, components: Sequence[str], example: Example
) -> Recording:
    """Return what the `components` do with `example`, under the weights of `choices`."""
    steps: list[Message] = []
    return ask(
        participant,
        "record",
        lambda _: {Place(*one["place"]): Event.from_dict(one["event"]) for one in steps},
        listen=steps.append,
        choices=choices.as_dict(),
        components=list(components),
        example=example.as_dict(),
    )


def methods(backend: Backend) -> Methods:
    """Return what a participant answers about `backend`."""
    return {"account": partial(_account, backend), "record": partial(_record, backend)}


METHODS = on_target(methods)


def _account(backend: Backend) -> dict[str, Any]:
    try:
        return Account.of(backend).as_dict()
    except Exception as failure:  # describing a backend runs code of its author
        raise Unavailable(f"it could not be described: {summary(failure)}") from failure


def _record(
    backend: Backend,
    *,
    choices: dict[str, Any],
    components: Sequence[str],
    example: dict[str, Any],
    tell: Listener,
) -> None:
    try:
        steps = record(backend, Choices.of(choices), components, Example.from_dict(example))
    except (Absent, BackendError, Violation) as failure:
        raise Unavailable(str(failure)) from failure
    except Exception as failure:  # so do the steps that it reports
        raise Unavailable(f"its steps cannot be read: {summary(failure)}") from failure
    for place, event in steps.items():
        tell({"place": astuple(place), "event": event.as_dict()})
