"""What an exercise is made of. Each module beside this one holds the exercises of its lesson."""

from __future__ import annotations

import copy
import itertools
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

Meanwhile = Callable[[], object] | None
Client = Any  # a redis.Redis, whose types are the union of all shapes that it could reply in
COMMANDS = 1000  # that one call may send; more is a loop that does not end
RACES = range(2, 100)  # trips before which another client may come, one a call


class NotAttemptedError(Exception):
    """The stub was handed in as it is."""


class NotYetError(Exception):
    """Says what was seen on the server, for which input, against what is right."""


class Attempt:
    """A student's function, called with a live client, and the keys it is tried on.

    Attributes:
        function: as the student wrote it, not watched.
        server: the client for the checker itself.
    """

    def __init__(self, function: Callable[..., object], server: Client) -> None:
        self.server = server
        self._keys: list[str] = []
        self.function = function
        self._space = f"exercise:{secrets.token_hex(4)}"
        self._calls = 0

    def key(self) -> str:
        """A key under ``exercise:`` that nobody else uses; :meth:`close` unlinks it."""
        self._keys.append(f"{self._space}:{len(self._keys)}")
        return self._keys[-1]

    def close(self) -> None:
        """Unlink the keys that were handed out, and no other."""
        if self._keys:
            self.server.unlink(*self._keys)

    def __call__(
        self, *args: object, given: str, meanwhile: Meanwhile = None, before: int = 2
    ) -> Any:
        """What the function returns for ``args``, after a client as its first argument.

        Args:
            args: the arguments after the client.
            given: the input in words, for the reason of a "not yet".
            meanwhile: what another client does, once, between two round trips of the function;
                or it raises, and then nothing that the function sends afterwards comes through.
            before: the trip before which it does that; nothing happens where there are fewer. A
                function that is right is right before each of `RACES`. A pipeline with MULTI is
                one trip. Without, each of its commands is one: the server may serve others in
                between.

        Raises:
            NotAttemptedError: the first call returned Ellipsis, as the stub does.
            NotYetError: the function raised, or sends commands without end.
        """
        self._calls += 1
        pipelines: list[Client] = []
        try:
            result = self.function(self._watched(meanwhile, before, pipelines), *args)
        except NotYetError as error:
            raise NotYetError(f"{given}: {error}") from None
        except Exception as error:
            said = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
            raise NotYetError(f"{given}: your function raised {said}.") from None
        finally:
            for made in pipelines:
                made.reset()  # one that only watches holds a connection
        if result is ... and self._calls == 1:
            raise NotAttemptedError
        return result

    def _watched(self, meanwhile: Meanwhile, before: int, pipelines: list[Client]) -> Client:
        trips, ended = itertools.count(1), list[BaseException]()

        def watched(send: Callable[..., Any]) -> Callable[..., Any]:
            def trip(*args: object, **options: object) -> Any:
                if ended:
                    raise ended[0]
                number = next(trips)
                if number > COMMANDS:
                    raise NotYetError(f"your function sent more than {COMMANDS} commands.")
                if number == before and meanwhile is not None:
                    try:
                        meanwhile()
                    except BaseException as error:
                        ended.append(error)
                        raise
                return send(*args, **options)

            return trip

        def pipeline(*args: object, **options: object) -> Client:
            made = self.server.pipeline(*args, **options)
            pipelines.append(made)  # WATCH, and what follows it up to MULTI, is sent at once
            made.immediate_execute_command = watched(made.immediate_execute_command)
            send = watched(made.execute)

            def execute(raise_on_error: bool = True) -> object:
                if made.transaction or made.explicit_transaction:
                    return send(raise_on_error)
                replies, stack = list[object](), made.command_stack
                for command in stack:
                    made.command_stack = [command]
                    replies += send(raise_on_error=False)
                made.reset()
                if raise_on_error:
                    made.raise_first_error(stack, replies)
                return replies

            made.execute = execute
            return made

        client = copy.copy(self.server)
        client.auto_close_connection_pool = False  # the pool belongs to the original
        vars(client).update(execute_command=watched(self.server.execute_command), pipeline=pipeline)
        return client


@dataclass(frozen=True)
class Task:
    """One exercise; its name is that of the function to write.

    Attributes:
        stars: one for a minute, two for ten, three for half an hour.
        question: what to do, in Markdown.
        hints: from a nudge to nearly the answer.
        solution: the one source of the stub and of the shown solution.
        check: raises NotYetError unless the attempt does what the solution's docstring says.
    """

    stars: int
    question: str
    hints: tuple[str, ...]
    solution: Callable[..., object]
    check: Callable[[Attempt], None]


def same(seen: object, right: float) -> bool:
    """Whether it is this number, of whatever type; True is no number."""
    return isinstance(seen, Real) and not isinstance(seen, bool) and seen == right


def cut(text: str) -> str:
    """A text as it may stand in a reason, cut where it gets long."""
    return text if len(text) <= 100 else f"{text[:97]}..."


def shown(value: object) -> str:
    """A value as it may stand in a reason."""
    return cut(repr(value))
