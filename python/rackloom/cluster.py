"""Runs on the machines of a Dask cluster.

The native part plans what is to be run and stores what comes back; a `Cluster` here carries jobs
to the workers of a cluster and their results back, and `carry_out` is what a worker does. A job
and its results are bytes: no file system is shared. Dask runs a job again whose worker is lost.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import queue
import re
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rackloom import _native
from rackloom.errors import InputError, RunError

if TYPE_CHECKING:
    from distributed import Client, Future, Worker

Files: TypeAlias = list[tuple[str, bytes]]
"""Files by name."""

News: TypeAlias = tuple[str | None, Files | None, str | None]
"""A job that has ended: its key and its files, or why there are none. Without a key: a note."""

ADDRESS = re.compile(r"(\w+://)?[^/]+:\d+/?")
"""Where a scheduler may listen."""

CONNECT_SECONDS = 10
"""How long a scheduler may take to answer (our choice)."""

LOOK_SECONDS = 2.0
"""How often the workers are looked at while nothing else happens (our choice)."""

STOP_SECONDS = 10.0
"""How long results that are there are fetched when all else is cancelled (our choice)."""

FETCHERS = 4
"""How many results are fetched at a time (our choice)."""

SENDS_MAX = 3
"""How often a job is sent away whose worker turns out to be too small (our choice)."""

RESOURCE = "MEMORY"
"""What workers call the memory that they offer, where they say it: ``--resources MEMORY=8e9``."""


class DoesNotFitError(Exception):
    """A worker has less memory than a job takes."""


def of(client: Client | str) -> Cluster:
    """The cluster of a client, or of the scheduler with this address or this file.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """
    try:
        import distributed  # noqa: PLC0415 - nothing else needs it
    except ImportError:
        message = "needs Dask, which is not installed: pip install 'rackloom[dask]'"
        raise InputError([("dask", None, None, message)]) from None
    if isinstance(client, distributed.Client):
        if client.asynchronous:
            message = "found an asynchronous client; expected one made with asynchronous=False"
            raise InputError([("client", None, None, message)])
        return Cluster(client)
    if not isinstance(client, str):
        message = f"found {type(client).__name__}; expected a distributed.Client or an address"
        raise InputError([("client", None, None, message)])
    is_file = Path(client).is_file()
    expected = (
        "expected the address of a Dask scheduler, such as tcp://host:8786, or the file that it "
        "writes with --scheduler-file"
    )
    # Of what is neither, a client is half made, and takes long to be gone.
    if not is_file and not ADDRESS.fullmatch(client):
        raise InputError([(f"dask {client}", None, None, expected)])
    where = {"scheduler_file": client} if is_file else {"address": client}
    try:
        made = distributed.Client(**where, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        message = f"no scheduler answers: {error}; {expected}"
        raise InputError([(f"dask {client}", None, None, message)]) from None
    return Cluster(made, owned=True)


@dataclass
class _Job:
    """A job that has not ended."""

    key: str
    work: bytes
    memory: int
    files: list[Path]
    sends: int = 0
    future: Future[Any] | None = None
    workers: list[str] | None = None
    """Those that have the memory, where not all have."""
    is_here: bool = False
    """Whether its result has been fetched."""


@dataclass
class _Fetched:
    """What a worker returned or raised."""

    job: _Job
    future: Future[Any]
    files: Files | None = None
    why: str | None = None
    error: BaseException | None = None

    def get(self) -> tuple[Files | None, str | None]:
        if self.error is not None:
            raise self.error
        return self.files, self.why


class Cluster:
    """A Dask cluster, as the native part drives it, from one thread."""

    def __init__(self, client: Client, *, owned: bool = False) -> None:
        self._client = client
        self._owned = owned
        self._jobs: dict[str, _Job] = {}
        self._held: dict[Path, Future[bytes]] = {}
        self._news: queue.SimpleQueue[_Fetched | News] = queue.SimpleQueue()
        self._fetchers = ThreadPoolExecutor(FETCHERS, thread_name_prefix="rackloom-fetch")
        self._numbers = itertools.count()
        self._workers: Mapping[str, Mapping[str, Any]] = {}
        self._looked = 0.0
        self._waits = False
        # Two sweeps at a time on one cluster have nothing to do with each other.
        self._name = f"rackloom-{os.getpid()}-{id(self):x}"

    def submit(self, key: str, work: bytes, memory: int, files: list[Path]) -> None:
        """Takes a job in: names it, what `carry_out` does, what it takes, what it reads besides."""
        job = _Job(key, work, memory, files)
        self._jobs[key] = job
        self._send(job)

    def next(self, seconds: float) -> News | None:
        """What is new; waits for it so long.

        Raises:
            RunError: The cluster is gone, or its workers are no use.
        """
        try:
            found = self._news.get(timeout=seconds) if seconds > 0 else self._news.get_nowait()
        except queue.Empty:
            return self._look()
        return self._ended(found) if isinstance(found, _Fetched) else found

    def size(self) -> int:
        """How many threads the workers have now."""
        return sum(worker["nthreads"] for worker in self._known_workers().values())

    def cancel(self) -> None:
        """Cancels what has not ended; waits for results that are being fetched."""
        ended: list[_Job] = []
        going_on: list[_Job] = []
        for job in self._jobs.values():
            if job.future is not None:
                (ended if job.future.status == "finished" else going_on).append(job)
        if going_on and self._client.status == "running":
            self._client.cancel([job.future for job in going_on])
        limit = time.monotonic() + STOP_SECONDS
        while not all(job.is_here for job in ended) and time.monotonic() < limit:
            time.sleep(0.01)

    def close(self) -> None:
        """Gives the cluster back."""
        self._jobs.clear()
        self._held.clear()
        self._fetchers.shutdown(wait=False, cancel_futures=True)
        if self._owned:
            self._client.close()

    def _send(self, job: _Job) -> None:
        """Hands a job to Dask, for the workers on which it fits."""
        workers = self._known_workers()
        fitting = [address for address, worker in workers.items() if _fits(job.memory, worker)]
        if workers and not fitting:
            del self._jobs[job.key]
            self._news.put((job.key, None, _too_large(job.memory, workers)))
            return
        # Workers that come later may do it as well, unless some are known to be too small.
        job.workers = None if len(fitting) == len(workers) else fitting
        declared = any(RESOURCE in worker["resources"] for worker in workers.values())
        job.sends += 1
        job.future = self._client.submit(
            carry_out,
            _native.VERSION,
            job.work,
            job.memory,
            [self._hold(path) for path in job.files],
            key=f"{self._name}-{job.key}-{next(self._numbers)}",
            workers=job.workers,
            resources={RESOURCE: job.memory} if declared else None,
            pure=False,
        )
        # Fetched in threads: if its worker dies meanwhile it runs again, which may take long.
        job.future.add_done_callback(lambda future: self._fetch(job, future))

    def _fetch(self, job: _Job, future: Future[Any]) -> None:
        def fetch() -> None:
            fetched = _Fetched(job, future)
            try:
                fetched.files, fetched.why = future.result()
            except BaseException as error:  # whatever the worker raised
                fetched.error = error
            self._news.put(fetched)
            job.is_here = True

        with contextlib.suppress(RuntimeError):  # closed: nobody wants it
            self._fetchers.submit(fetch)

    def _ended(self, fetched: _Fetched) -> News | None:
        """What became of a job."""
        job = fetched.job
        if self._jobs.get(job.key) is not job or job.future is not fetched.future:
            return None
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415 - it is there

        try:
            files, why = fetched.get()
        except DoesNotFitError as error:
            self._looked = 0.0
            if job.sends < SENDS_MAX:
                self._send(job)
                return None
            files, why = None, str(error)
        except KilledWorker as error:
            files, why = (
                None,
                (
                    f"{error.allowed_failures + 1} workers died while they ran it, lastly "
                    f"{error.last_worker.address}; it takes some {_binary(job.memory)} of memory, "
                    "and more for flows under way: see the workers' logs, or give them more memory"
                ),
            )
        except CancelledError:
            message = "the cluster has cancelled points: its scheduler was restarted or is gone"
            raise RunError(message) from None
        except ModuleNotFoundError as error:
            message = (
                f"{error} on the cluster; expected rackloom {_native.VERSION} in the environment "
                "of its scheduler and workers: pip install it there"
            )
            raise RunError(message) from None
        del self._jobs[job.key]
        job.future = None
        return job.key, files, why

    def _look(self) -> News | None:
        """Sees whether the cluster is there, and what has become of its workers."""
        if not self._jobs or time.monotonic() - self._looked < LOOK_SECONDS:
            return None
        if self._client.status not in ("running", "connecting"):
            raise RunError("the connection to the cluster's scheduler is lost")
        if any(
            job.future is not None and job.future.status == "lost" for job in self._jobs.values()
        ):
            raise RunError("the cluster's scheduler is gone, and with it the points handed in")
        workers = self._known_workers()
        for job in list(self._jobs.values()):
            # Nobody is left who may do it.
            if job.workers is not None and workers and not workers.keys() & set(job.workers):
                if job.future is not None:
                    self._client.cancel([job.future])
                self._jobs[job.key] = _Job(job.key, job.work, job.memory, job.files)
                self._send(self._jobs[job.key])
        if workers:
            self._waits = False
        elif not self._waits:
            self._waits = True
            return None, None, "the cluster has no workers now; points wait for the first"
        return None

    def _known_workers(self) -> Mapping[str, Mapping[str, Any]]:
        """The workers, by address, as of a moment ago."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            try:
                self._workers = self._client.scheduler_info(n_workers=-1)["workers"]
            except (OSError, RuntimeError, ValueError) as error:
                message = f"the cluster's scheduler does not answer: {error}"
                raise RunError(message) from error
            self._looked = time.monotonic()
        return self._workers

    def _hold(self, path: Path) -> Future[bytes]:
        """The content of a file, on the cluster.

        A task that returns it, and no data scattered: those are lost with the worker that has them.
        """
        if path not in self._held:
            try:
                content = path.read_bytes()
            except OSError as error:
                raise InputError([(str(path), None, None, f"cannot be read: {error}")]) from error
            key = f"{self._name}-file-{hashlib.sha256(content).hexdigest()[:16]}"
            with warnings.catch_warnings():
                # That it is large.
                warnings.simplefilter("ignore", UserWarning)
                self._held[path] = self._client.submit(bytes, content, key=key)
        return self._held[path]


def _fits(need: int, worker: Mapping[str, Any]) -> bool:
    """Whether a worker has the memory; 0 is no limit."""
    limit = worker["memory_limit"] or 0
    offered = worker["resources"].get(RESOURCE, need)
    return bool((limit == 0 or limit >= need) and offered >= need)


def _too_large(need: int, workers: Mapping[str, Mapping[str, Any]]) -> str:
    """Why none of the workers can do it."""

    def memory(worker: Mapping[str, Any]) -> int:
        limit = worker["memory_limit"] or need
        return int(min(limit, worker["resources"].get(RESOURCE, limit)))

    largest = max(map(memory, workers.values()))
    count = f"the largest of {len(workers)} workers has" if len(workers) > 1 else "the worker has"
    return (
        f"takes some {_binary(need)} of memory, and {count} {_binary(largest)}: start workers with "
        "more (dask worker --memory-limit); the same sweep then goes on from here"
    )


def _binary(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:  # noqa: PLR2004 - what the units are made of
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


# What follows is done on workers.


def carry_out(
    version: str, work: bytes, memory: int, files: list[bytes]
) -> tuple[Files | None, str | None]:
    """Does a job on a worker; the files that it left, or why there are none.

    Raises:
        DoesNotFitError: The worker has less memory than the job takes.
        RunError: The worker has another version of this package.
    """
    from distributed import get_worker  # noqa: PLC0415 - it is there

    worker = get_worker()
    if version != _native.VERSION:
        message = (
            f"found rackloom {_native.VERSION} on {worker.address}; expected {version}, as where "
            "the sweep was started: results would differ"
        )
        raise RunError(message)
    limit = worker.memory_manager.memory_limit
    if limit and memory > limit:
        message = (
            f"takes some {_binary(memory)} of memory, and {worker.address} has {_binary(limit)}"
        )
        raise DoesNotFitError(message)
    is_cancelled = _cancelled(worker, worker.get_current_task())
    scratch = tempfile.TemporaryDirectory(dir=worker.local_directory, ignore_cleanup_errors=True)
    with scratch as name, ROOM.taken(memory, limit or None, is_cancelled):
        copies = [_copy(content, worker.local_directory) for content in files]
        directory = Path(name) / "results"
        try:
            why = _native.carry_out(work, copies, directory, is_cancelled)
        except KeyboardInterrupt:
            # Cancelled: nobody waits for it. Left to itself this would end the worker.
            why = "cancelled"
        if why is not None:
            return None, why
        left = sorted(directory.iterdir())
        return [(path.name, path.read_bytes()) for path in left], None


def _cancelled(worker: Worker, key: Any) -> Callable[[], bool]:
    """Whether nobody wants this task any more: Dask itself lets it run to its end."""

    def ask() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return ask


def _copy(content: bytes, folder: str) -> Path:
    """A file with this content, written once a worker."""
    path = Path(folder) / f"rackloom-{hashlib.sha256(content).hexdigest()[:16]}"
    if not path.exists():
        half = path.with_suffix(f".{threading.get_ident()}")
        half.write_bytes(content)
        half.replace(path)
    return path


class Room:
    """Memory of a worker, for runs that are under way in it at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = 0

    @contextlib.contextmanager
    def taken(
        self, need: int, limit: int | None, is_cancelled: Callable[[], bool]
    ) -> Iterator[None]:
        """Waits until there is as much beside the others, and takes it; a run alone goes on."""
        with self._changed:
            while limit is not None and self._taken and self._taken + need > limit:
                if is_cancelled():
                    break
                self._changed.wait(0.1)
            self._taken += need
        try:
            yield
        finally:
            with self._changed:
                self._taken -= need
                self._changed.notify_all()


ROOM = Room()
"""Of this process."""
