"""Roles: the groups of warps of a cluster that run at the same time, one step after another here.

Each role is a thread of Python's, and exactly one runs at a time, until it has to wait. So a run is
the same each time: with a seed, the next role is drawn, and a role may pause at any call.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from tiled_matmul.microscope.gluon.clocks import Clock


class _Stopped(BaseException):
    """Ends a role whose cluster has ended."""


class Role:
    """One group of warps of one block: what it knows, and what it waits for.

    `title` is its name in messages, which may change. `clock` is what is over for it, `fenced` what
    of that the copy engine sees. `products` are those that it started and that are not done,
    `stores` its stores that may still read.
    """

    def __init__(self, name: str, block: int, start: Callable[[], Any]) -> None:
        self.name, self.title, self.block = name, name, block
        self.clock, self.fenced = Clock(), Clock()
        self.products: list[Any] = []
        self.stores: list[Any] = []
        self.started = {"products": 0, "stores": 0}
        self.waits_for: Callable[[], bool] | None = None
        self.waits_at = 0, ""  # line and function
        self.waits_in_words: Callable[[], str] = str
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._start = start
        self._go = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    @property
    def source(self) -> tuple:
        """The source of its own accesses in clocks."""
        return "role", self.block, self.name

    def tick(self) -> int:
        """Begin an event of its own, and return its number."""
        self.clock[self.source] = self.clock.get(self.source, 0) + 1
        return self.clock[self.source]

    def ready(self) -> bool:
        """Can it go on?"""
        return not self.done and (self.waits_for is None or self.waits_for())


class Roles:
    """The roles of one cluster, and whose turn it is."""

    def __init__(self, seed: int | None = None) -> None:
        self.all: list[Role] = []
        self.current: Role | None = None
        self._random = None if seed is None else random.Random(seed)
        self._back = threading.Semaphore(0)
        self._stopping = False
        self.stuck: list[Role] = []

    def add(self, role: Role) -> Role:
        """Add a role, which begins when its turn comes."""
        self.all.append(role)
        return role

    def run(self, idle: Callable[[], bool]) -> None:
        """Run all roles to their ends. `idle` is called when all wait; it says if it did something.

        If it did not, the roles wait for each other: then `stuck` has them. An exception of a role
        is raised here.
        """
        try:
            while not all(role.done for role in self.all):
                ready = [role for role in self.all if role.ready()]
                if ready:
                    self._turn(self._random.choice(ready) if self._random else ready[0])
                elif not idle():
                    self.stuck = [role for role in self.all if not role.done]
                    return
        finally:
            self._stop()

    def wait(
        self, condition: Callable[[], bool], place: tuple[int, str], words: Callable[[], str]
    ) -> None:
        """Let the current role wait until `condition` holds; others run meanwhile.

        `place` is the wait's line and function, and `words` say what it waits for, when asked.
        """
        role = self.current
        role.waits_for, role.waits_at, role.waits_in_words = condition, place, words
        self._yield(role)
        role.waits_for = None

    def pause(self) -> None:
        """Let others run, if turns are drawn and the draw says so."""
        if self._random and self._random.random() < 0.5:
            self._yield(self.current)

    def _turn(self, role: Role) -> None:
        self.current = role
        if role._thread is None:
            role._thread = threading.Thread(target=self._body, args=(role,), daemon=True)
            role._thread.start()
        else:
            role._go.release()
        self._back.acquire()
        if role.error is not None:
            raise role.error

    def _body(self, role: Role) -> None:
        try:
            role.result = role._start()
        except _Stopped:
            pass
        except BaseException as error:
            role.error = error
        role.done = True
        self._back.release()

    def _yield(self, role: Role) -> None:
        self._back.release()
        role._go.acquire()
        if self._stopping:
            raise _Stopped

    def _stop(self) -> None:
        self._stopping = True
        for role in self.all:
            if role._thread is not None and not role.done:
                role._go.release()
                role._thread.join()
