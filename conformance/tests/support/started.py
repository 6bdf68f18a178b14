"""The processes that a test has started."""

import psutil
from standalone import RUNNER

from attentest.harness import fork_server

SERVERS = {fork_server.__name__, RUNNER}
"""Words in the command lines of processes that serve several tests."""


def started() -> set[psutil.Process]:
    """Return the descendants of this process that run, without those that serve several tests."""
    this = psutil.Process()
    servers = {one for one in this.children() if SERVERS.intersection(one.cmdline())}
    return {*this.children(recursive=True)} - servers
