"""What an exercise is made of. Each module beside this one holds the exercises of its lesson."""

from __future__ import annotations

import copy
import itertools
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Client = Any  # a redis.Redis, whose types are the union of all shapes that it could reply in
COMMANDS = 1000  # that one call may send; more is a loop that does not end


class NotAttemptedError(Exception):
    """The stub was handed in as it is."""


class NotYetError(Exception):
    """Says what was seen on the server, for which input, against what is right."""


class Attempt:
    """A student's function, called with a live client, and the keys it is tried on.

    Attributes:
        server: the client for the checker itself.
    """

    def __init__(self, function: Callable[..., object], server: Client) -> None:
        self.server = server
        self._keys: list[str] = []
        self._function = function
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
        self, *args: object, given: str, meanwhile: Callable[[], object] | None = None
    ) -> Any:
        """What the function returns for ``args``, after a client as its first argument.

        Args:
            args: the arguments after the client.
            given: the input in words, for the reason of a "not yet".
            meanwhile: what another client does just before the function's second round trip.

        Raises:
            NotAttemptedError: the first call returned Ellipsis, as the stub does.
            NotYetError: the function raised, or sends commands without end.
        """
        self._calls += 1
        try:
            result = self._function(self._watched(meanwhile), *args)
        except NotYetError as error:
            raise NotYetError(f"{given}: {error}") from None
        except Exception as error:
            said = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
            raise NotYetError(f"{given}: your function raised {said}.") from None
        if result is ... and self._calls == 1:
            raise NotAttemptedError
        return result

    def _watched(self, meanwhile: Callable[[], object] | None) -> Client:
        trips = itertools.count(1)

        def watched(send: Callable[..., object]) -> Callable[..., object]:
            def trip(*args: object, **options: object) -> object:
                number = next(trips)
                if number > COMMANDS:
                    raise NotYetError(f"your function sent more than {COMMANDS} commands.")
                if number == 2 and meanwhile is not None:
                    meanwhile()
                return send(*args, **options)

            return trip

        client = copy.copy(self.server)
        client.auto_close_connection_pool = False  # the pool belongs to the original
        vars(client).update(
            execute_command=watched(self.server.execute_command),
            pipeline=watched(self.server.pipeline),
        )
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


def cut(text: str) -> str:
    """A text as it may stand in a reason, cut where it gets long."""
    return text if len(text) <= 100 else f"{text[:97]}..."


def shown(value: object) -> str:
    """A value as it may stand in a reason."""
    return cut(repr(value))
