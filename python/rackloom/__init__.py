"""Rackloom simulates published network fabrics for racks of servers.

    import rackloom

    result = rackloom.run("examples/shoal-rack.toml", run__flows=10_000)
    result.summary["slowdown"]["all"]["p99"]
    result.flows  # a pyarrow Table
    result.report()  # the path of a page to open

The same scenario, seed and version give the same results as the ``rackloom`` command.
"""

from rackloom._native import VERSION
from rackloom.errors import Error, InputError, Problem, RunError
from rackloom.page import View, view
from rackloom.progress import Progress
from rackloom.results import (
    Comparison,
    Estimate,
    Figure,
    Point,
    Recorded,
    Reproduction,
    Result,
    Search,
    Sweep,
    Trial,
)
from rackloom.verbs import (
    compare,
    describe,
    estimate,
    list,
    load,
    record,
    reproduce,
    resolve,
    run,
    schema,
    search,
    sweep,
)

__version__ = VERSION
"""The version of the package, which is also the command's."""

__all__ = [
    "Comparison",
    "Error",
    "Estimate",
    "Figure",
    "InputError",
    "Point",
    "Problem",
    "Progress",
    "Recorded",
    "Reproduction",
    "Result",
    "RunError",
    "Search",
    "Sweep",
    "Trial",
    "View",
    "__version__",
    "compare",
    "describe",
    "estimate",
    "list",
    "load",
    "record",
    "reproduce",
    "resolve",
    "run",
    "schema",
    "search",
    "sweep",
    "view",
]
