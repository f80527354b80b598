"""The first exercise of lesson 10: an order's key that is remembered."""

from __future__ import annotations

from typing import Any

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, shown
from labkit.lessons.tasks.traces import deadline, no_other_keys, same_deadline

Body = dict[str, Any]
DAY = 86_400  # seconds
DIED = "the process died between two commands"


class _DiedError(BaseException):
    """The process ends here; not an Exception, so that no function can catch it by accident."""


# ---- remember


def remember(r: Client, record: str, body: dict[str, object], seconds: int) -> str:
    """Note the body of an order under its key; "new", "replayed" or "refused".

    `body` is a dict that JSON can hold. A record that has equal fields, in whatever order, gives
    "replayed"; another body gives "refused", and the record stays as it is, its deadline too. A
    new record lives for `seconds`, and at no moment without a deadline, even when your process
    dies. Of clients that come at the same time one is told "new".
    """
    import json

    text = json.dumps(body, sort_keys=True)
    while not r.set(record, text, nx=True, ex=seconds):  # one command: note and deadline
        found = r.get(record)
        if found is not None:  # it may have ended between the two commands
            return "replayed" if found == text else "refused"
    return "new"


ORDER: Body = {"customer": 7, "isbn": "9780441013593", "quantity": 2}
BODIES: tuple[tuple[str, Body, Body, str], ...] = (
    ("the same body", ORDER, dict(ORDER), "replayed"),
    ("the fields in another order", ORDER, dict(reversed(ORDER.items())), "replayed"),
    ("another quantity", ORDER, ORDER | {"quantity": 20}, "refused"),
    ("the quantity as text", ORDER, ORDER | {"quantity": "2"}, "refused"),
    ("one field more", ORDER, ORDER | {"gift": None}, "refused"),
    ("values that read the same in a row", {"a": "1", "b": "23"}, {"a": "12", "b": "3"}, "refused"),
    ("values that changed places", {"a": 1, "b": 2}, {"a": 2, "b": 1}, "refused"),
    ("a list in another order", {"books": [1, 2]}, {"books": [2, 1]}, "refused"),
    ("inner fields in another order", {"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, "replayed"),
    ("a long note that differs at its end", {"a": 300 * "x"}, {"a": 299 * "x" + "y"}, "refused"),
    ("letters beyond ASCII", {"a": "é"}, {"a": "è"}, "refused"),
    ("a space inside a value", {"a": "x y"}, {"a": "xy"}, "refused"),
    ("a capital letter", {"a": "Emma"}, {"a": "emma"}, "refused"),
)


def check_remember(attempt: Attempt) -> None:
    """Two bodies under one key; then another client, an end and a death between the trips."""
    r, record = attempt.server, attempt.key()
    with no_other_keys(r, [record]):
        for name, first, second, right in BODIES:
            r.unlink(record)
            _says("a new key", attempt(record, first, 7_200, given="a new key"), "new")
            lives(r, record, "a new key", 7_200)
            r.pexpire(record, 5_000_400)
            ends = deadline(r, record)
            for number, body, answer in ((1, second, right), (2, first, "replayed")):
                words = name if number == 1 else f"{name}, then the first body again"
                _says(words, attempt(record, body, 7_200, given=words), answer)
                same_deadline(r, record, words, ends)
        for race in (_second_client, _record_ends, _dies):
            for trip in RACES:
                if not race(attempt, record, trip):
                    break


def _second_client(attempt: Attempt, record: str, trip: int) -> bool:
    r, said = attempt.server, list[object]()
    name = "another client sends the same order between two commands"
    r.unlink(record)

    def second() -> None:
        said.append(attempt(record, ORDER, DAY, given=name))

    said.append(attempt(record, ORDER, DAY, given=name, meanwhile=second, before=trip))
    if len(said) > 1 and sorted(map(str, said)) != ["new", "replayed"]:
        raise NotYetError(f"{name}: they gave {shown(said)}; right is 'new' once.")
    return len(said) > 1


def _record_ends(attempt: Attempt, record: str, trip: int) -> bool:
    r, ended = attempt.server, list[object]()
    name = "the record's time is over between two commands"
    r.unlink(record)
    attempt(record, ORDER, DAY, given=name)
    seen = attempt(
        record,
        ORDER,
        DAY,
        given=name,
        meanwhile=lambda: ended.append(r.unlink(record)),
        before=trip,
    )
    if ended and seen == "new":
        lives(r, record, name, DAY)
    elif seen != "replayed":
        raise NotYetError(f"{name}: gave {shown(seen)}; right is 'new', with a new record.")
    return bool(ended)


def _dies(attempt: Attempt, record: str, trip: int) -> bool:
    r = attempt.server
    r.unlink(record)
    dead = died(attempt, (record, ORDER, DAY), trip, [record])
    if r.exists(record):
        lives(r, record, DIED, DAY)
    return dead


def _says(name: str, seen: object, right: str) -> None:
    if seen != right:
        raise NotYetError(f"{name}: gave {shown(seen)}; right is {right!r}.")


# ---- what the exercises of the lesson share


def lives(r: Client, key: str, name: str, seconds: int) -> None:
    """Refuse a key that is not there, or does not end in so many seconds."""
    left = r.ttl(key)
    if left == -2:
        raise NotYetError(f"{name}: the key given for it is not there.")
    if not seconds - 30 < left <= seconds:
        ends = "never" if left == -1 else f"in {left:,} s"
        raise NotYetError(f"{name}: ends {ends}; right is in {seconds:,} s.")


def died(attempt: Attempt, args: tuple[object, ...], trip: int, keys: list[str]) -> bool:
    """Whether there was such a trip; the keys are then as they were when the process died."""
    r, left = attempt.server, list[tuple[str, int, Any]]()

    def die() -> None:
        for key in keys:
            if r.exists(key):
                left.append((key, r.pttl(key), r.execute_command("DUMP", key, NEVER_DECODE=True)))
        raise _DiedError

    try:
        attempt(*args, given=DIED, meanwhile=die, before=trip)
    except _DiedError:
        r.unlink(*keys)  # a dead process runs no "finally"
        for key, left_ms, dumped in left:
            r.restore(key, max(left_ms, 0), dumped)
        return True
    return False


TASKS = (
    Task(
        stars=1,
        question=(
            "A customer sends an order twice, or sends something else under the same key. Write "
            "`remember`, which tells the three cases apart."
        ),
        hints=(
            "Two texts of one body must be equal: json.dumps has an option that sorts the fields. "
            "(Python's hash() of a text is another number in each process.)",
            "SET has the options NX and EX: note it only if there is none, with its deadline, in "
            "one command. Where it does nothing, GET and compare.",
            "Between SET and GET the record may end. Then begin again.",
        ),
        solution=remember,
        check=check_remember,
    ),
)
