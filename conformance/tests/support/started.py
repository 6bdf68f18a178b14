"""The processes that a test has started."""

import psutil

from attentest.harness import fork_server


def started() -> set[psutil.Process]:
    """Return the descendants of this process that run, without the server that forks them."""
    this = psutil.Process()
    servers = {one for one in this.children() if fork_server.__name__ in one.cmdline()}
    return {*this.children(recursive=True)} - servers
