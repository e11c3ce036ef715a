"""Grade a class on a Dask cluster: `grade --teacher DIR --scheduler ADDRESS`, or `--cluster N`.

The client hands out a few submissions for each worker, and another one for each report that comes
back, so that neither it nor the scheduler holds a class. Submissions and reports travel as bytes;
reports are JSON, and no learner's answer runs or is unpickled outside a worker's sandbox.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import math
import queue
import secrets
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, Security

from tiled_matmul.grader import node, submission
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.teacher import Work

AHEAD = 2  # submissions that a worker has or waits for, for each of its threads
DEATHS = 3  # of workers, after which a submission is not handed out again
LOSSES = 10  # of a submission on its way, after which the grader has failed on it
WAIT_S = 0.5
LOOK_S = 5.0  # between two looks at the cluster's workers
PATIENCE_S = 300.0  # without a scheduler, or without any worker
GATHER_S = 60.0
GPU = {"GPU": 1}  # what a worker of a GPU machine has to offer: dask worker --resources GPU=1
# No part of Dask has to unpickle what a worker sends.
PLAIN = ("dask", "msgpack", "error")


@dataclass
class _Task:
    work: Work
    future: Future
    alone: bool  # nothing else is being graded meanwhile


class Cluster:
    """A connection to a cluster, as a context; called on what has to be graded, it grades.

    With an `address` it is that scheduler's, otherwise a new one of `workers` processes on this
    machine, which other users cannot reach. `say` gets a line for what the teacher should know.
    Raises ValueError where a worker differs from this machine, OSError where there is no scheduler.
    """

    def __init__(
        self,
        address: str | None,
        workers: int | None,
        *,
        seed: int | None = None,
        gpu: bool = False,
        say: Callable[[str], None] = lambda line: print(f"grade: {line}", file=sys.stderr),
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.address, self.workers, self.say, self.patience_s = address, workers, say, patience_s
        self.seed, self.gpu = seed, gpu
        self.local: LocalCluster | None = None
        self.client: Client | None = None
        self.threads, self.looked = 0, -math.inf
        self.attempts = itertools.count()
        self.by_node: Counter[str] = Counter()
        self.wanted = json.dumps(node.identity()).encode()
        self.grading = secrets.token_hex(8)
        self.examined = ""  # the scheduler whose workers were
        self.refused = False  # a worker has just refused to grade

    def __enter__(self) -> Cluster:
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"})
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            if self.address is None:
                self.local = self._started()
                self.address = self.local.scheduler_address
            self._connect(10)
        except BaseException:
            self.__exit__()
            raise
        if self.local is not None:  # another's may be reached through a tunnel only
            self.say(f"Dask's dashboard is {self.client.dashboard_link}")
        return self

    def __exit__(self, *exception: object) -> None:
        for name, count in sorted(self.by_node.items()):
            self.say(f"graded on {name}: {count:,}")
        for part in (self.client, self.local):
            if part is not None:
                with contextlib.suppress(Exception):
                    part.close(timeout=10)

    def _started(self) -> LocalCluster:
        dask.config.set({"distributed.scheduler.allowed-failures": DEATHS - 1})
        # With TLS, as any process of this machine can connect to a port of it.
        return LocalCluster(
            n_workers=self.workers,
            threads_per_worker=1,
            security=Security.temporary(),
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            resources=GPU if self.gpu else {},
            silence_logs=logging.CRITICAL,
        )

    def _connect(self, timeout_s: float) -> None:
        """Connect, and refuse a cluster with a worker that is not like this machine."""
        if self.local is None and self.address.startswith("tls"):
            if dask.config.get("distributed.comm.tls.client.cert", None) is None:
                raise ValueError(
                    f"{self.address} needs certificates, and Dask's settings name none: see the "
                    "teacher's page on clusters, `. tls/env`"
                )
        if self.client is not None:
            with contextlib.suppress(Exception):
                self.client.close(timeout=1)
        security = self.local.security if self.local is not None else None
        self.client = Client(
            self.local if self.local is not None else self.address,
            security=security,
            timeout=timeout_s,
            set_as_default=False,
            deserializers=PLAIN,
        )
        self._examine()

    def _examine(self) -> None:
        """Raise ValueError for a worker that may not grade, and keep such from joining."""
        scheduler = self.client.scheduler_info()["id"]
        said = self.client.run(node.examined, self.wanted, on_error="return")
        wrong = []
        for address, answer in sorted(said.items()):
            why = json.loads(answer) if isinstance(answer, bytes) else f"no course: {answer}"
            if why:
                wrong.append(f"{address}: {why}")
        if wrong:
            raise ValueError(
                f"{len(wrong)} of {len(said)} workers may not grade, because they differ from this "
                f"machine: {' | '.join(wrong[:5])}"
            )
        self.client.register_plugin(node.Guard(self.wanted))
        self.examined, self.looked = scheduler, -math.inf

    def _room(self) -> int:
        """Return how many submissions may be under way."""
        if self.client.status != "running":
            self.looked = -math.inf
            return 0
        if time.monotonic() - self.looked > LOOK_S:
            self.looked = time.monotonic()
            with contextlib.suppress(OSError, TimeoutError):
                known = self.client.scheduler_info(n_workers=-1)
                if known["id"] != self.examined or self.refused:  # it was started anew
                    self._examine()
                workers = known["workers"].values()
                able = [x for x in workers if not self.gpu or x.get("resources", {}).get("GPU")]
                self.threads = sum(1 if self.gpu else x["nthreads"] for x in able)
        return AHEAD * self.threads

    def _submitted(self, work: Work, done: queue.SimpleQueue, alone: bool) -> _Task:
        key = f"grade-{work.number}-{work.key[:8]}-{next(self.attempts)}"
        future = self.client.submit(
            *(node.graded, work.name, work.data, self.seed, self.gpu, self.wanted, self.grading),
            key=key,
            pure=False,
            resources=GPU if self.gpu else None,
        )
        future.add_done_callback(lambda future: done.put(future.key))
        return _Task(work, future, alone)

    def __call__(self, todo: Iterator[Work]) -> Iterator[tuple[Work, dict]]:
        """Yield (work, report) of each, in the order in which they are done.

        What is lost with a worker, or with the scheduler, is handed out again. Raises OSError after
        `patience_s` without any.
        """
        flying: dict[str, _Task] = {}
        done: queue.SimpleQueue[str] = queue.SimpleQueue()
        ready: deque[Work] = deque()  # the next one, and what was lost
        suspects: deque[Work] = deque()  # whose workers ended: perhaps it was a neighbour's fault
        losses: Counter[int] = Counter()
        since: float | None = None
        while True:
            room = self._room()
            while True:
                if not ready and (work := next(todo, None)) is not None:
                    ready.append(work)
                alone = bool(suspects) and not ready and not flying
                if not (ready or alone) or len(flying) >= room:
                    break
                task = self._submitted((suspects if alone else ready).popleft(), done, alone)
                flying[task.future.key] = task
            if not flying and not ready and not suspects:
                return
            since = self._waited(since, room)
            for key in self._ended(done, flying):
                task = flying.pop(key)
                report = self._report(task)
                if report is None:
                    self.looked = -math.inf  # perhaps it is another scheduler, or worker
                    losses[task.work.number] += 1
                    if losses[task.work.number] >= LOSSES:
                        lost = OSError(f"lost on its way {LOSSES} times")
                        report = submission.failed(task.work.name, lost)
                if report is not None:
                    losses.pop(task.work.number, None)
                    yield task.work, report
                else:
                    by_worker = task.future.status == "error"
                    (suspects if by_worker and not task.alone else ready).append(task.work)

    def _ended(self, done: queue.SimpleQueue, flying: dict[str, _Task]) -> list[str]:
        """Wait a little, and return the keys of what is done, or lost with the scheduler."""
        ended = set()
        with contextlib.suppress(queue.Empty):
            ended.add(done.get(timeout=WAIT_S))
            while True:
                ended.add(done.get_nowait())
        lost = (key for key, task in flying.items() if task.future.status in ("cancelled", "lost"))
        return [key for key in ended.union(lost) if key in flying]

    def _report(self, task: _Task) -> dict[str, Any] | None:
        """Return the report that came back, or None if there is none."""
        try:
            name, report = json.loads(task.future.result(timeout=GATHER_S))
            self.by_node[name] += report is not None
            self.refused = report is None
            return report
        except KilledWorker:
            if not task.alone:
                return None
            crash = sentence("cluster: crash", times=DEATHS)
            return submission.refused(task.work.name, crash) | {"status": "CRASH"}
        except Exception as error:
            if task.future.status == "error":  # the worker's fault, not the answer's
                return submission.failed(task.work.name, error)
            return None

    def _waited(self, since: float | None, room: int) -> float | None:
        """Return since when no worker is there, None if one is. Raises OSError after a while."""
        if room:
            return None
        now = time.monotonic()
        if since is None:
            self.say("no worker is there: waiting")
            return now
        if now - since > self.patience_s:
            raise OSError(
                f"no scheduler at {self.address}, or no worker there, for {self.patience_s:g} s"
            )
        if self.client.status in ("closed", "closing", "newly-created"):
            with contextlib.suppress(OSError):
                self._connect(5)
        return since
