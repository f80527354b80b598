"""A leaderboard made of events: what lesson 09 ends with."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, get_args

from labkit.boards.paging import DAY, LARGEST, Pages, Ties, Window, one_of, whole
from labkit.boards.scores import LIMIT, Composite, check_text
from labkit.boards.scripts import STEP, SUBMIT, TRIM
from labkit.errors import LabError

if TYPE_CHECKING:
    from redis import Redis

Keep = Literal["best", "sum"]
Event = tuple[str, str, int, int]  # id, player, points, at
BATCH = 500  # events of a rebuild in one round trip


class Leaderboard(Pages):
    """Players by points, most first, made of events that may come late and twice.

    ::

        times = Composite(points=(0, 10**6), tie=(season_start, season_end))
        policy = {"keep": "sum", "ties": "competition", "window": "fill"}
        board = Leaderboard(client, "season", **policy, codec=times)
        board.submit("8c1e", "zoe", 250, at=now)
        board.rank("zoe")

    To be read like any `Pages`. Points are whole numbers; of a sum, 0 or more, so that a total
    never falls. What stands on the board does not depend on the order of its events.

    Keys: the sorted set ``key``; the ids of all events in ``{key}:ids``, as long as the board is
    there; copies, and what a rebuild makes. All have one hash tag. No other key may begin with
    ``{key}:``, and ``b`` beside ``{b}`` are not two boards. Nobody else may write to the board.

    Memory: a row a player, an id an event; so give a board of a period its end. A best would be
    right without ids; with them `submit` can say what is new, and a trimmed event stays out.

    Args:
        client, key, ties, window, secret, largest: as for `Pages`; a tag in the key
            (``{game}:week``) puts boards that are to be united in one slot.
        keep: a player's ``best`` event, or the ``sum`` of all.
        codec: orders equal points by who reached them first, in times ``at`` (its ties; its
            ``first`` is ``low``): a best with its first event, a sum with its last. Without it,
            among equals the larger bytes of the name are first.
        ends: Unix time in ms at which the server removes the board and its ids; never without it.

    Raises:
        LabError: as `Pages`; a codec that does not fit. Methods: an argument out of its bounds.
    """

    def __init__(
        self,
        client: Redis,
        key: str,
        *,
        keep: Keep,
        ties: Ties,
        window: Window,
        codec: Composite | None = None,
        ends: int | None = None,
        secret: bytes | None = None,
        largest: int = LARGEST,
    ) -> None:
        reading: dict[str, Any] = {"codec": codec, "secret": secret, "largest": largest}
        super().__init__(client, key, ties=ties, window=window, **reading)
        one_of("keep", keep, get_args(Keep))
        if self._codec is not None and self._codec.first != "low":
            raise LabError("This codec has the later one first.", "Make it with first='low'.")
        self._keep = keep
        self._ends = "" if ends is None else str(whole("end", ends, 1, LIMIT))
        low, most = self._codec.points if self._codec else (1 - LIMIT, LIMIT - 1)
        if keep == "sum" and not low <= 0 <= most:
            raise LabError("A sum begins at 0, outside the codec's points.", "Declare them from 0.")
        self._range = 0 if keep == "sum" else low, most
        self._lowest = low if self._codec else 0
        names = ("ids", "next", "next:ids", "mark")
        self._keys = [key, *(f"{self._prefix}:{name}" for name in names)]
        scripts = map(self._client.register_script, (SUBMIT, TRIM, STEP))
        self._submit, self._trim, self._step = scripts

    def submit(self, event: str, player: str, points: int, at: int) -> bool:
        """Count an event once, and say whether this call did it.

        False: its id was counted before (its points are not looked at), also by this call, when
        the client sent it again because the reply was lost; or the board's end is past.

        Args:
            event: its id, the same whenever it is sent again.
            player: the member.
            points: a whole number.
            at: when it was played: within the codec's ties; not looked at without a codec.

        Raises:
            LabError: points, a total or a time out of range; nothing is written then.
        """
        return self._counted(self._submit(self._keys, self._words(event, player, points, at)))

    def trim(self, n: int, ties: Literal["cut", "keep"]) -> int:
        """Remove all but the best n; how many went.

        A tie over the edge is ``cut`` in the order of the board, or ``keep`` leaves all of it. Ids
        stay, so what was counted is not counted again. A sum that was removed begins at 0 again.
        """
        one_of("ties", ties, ("cut", "keep"))
        left = whole("number to be left", n, 1, LIMIT - 1)
        return int(self._trim([self.key], [left, self._unit, ties]))

    def rebuild(self, events: Iterable[Event], *, patience: int = 60) -> int:
        """Make the board anew from all its events, while others go on to submit.

        From the first step on every `submit` writes to two boards: the live one, and the new one,
        which has ids of its own. Meanwhile ``events`` are replayed into the new one; the last
        step puts it in place of the live one. An event that comes by both ways counts once.

        None is lost if each is in ``events`` or is submitted after the first step. So write an
        event to the log first, then submit it; and let ``events`` be an iterator that reads the
        log when it is asked for its first event, not a list that was read before.

        Args:
            events: (id, player, points, at) in any order.
            patience: seconds without a step after which a rebuild counts as dead.

        Returns:
            How many events the replay counted.

        Raises:
            LabError: another rebuild is at work; this one was taken for dead; an event that
                `submit` refuses. The live board stays as it is then, unless the reply of the last
                step was lost. What a killed rebuild made stays until the next one begins.
        """
        mark, wait = secrets.token_hex(8), 1000 * whole("patience", patience, 1, DAY)

        def step(name: str, otherwise: str, cure: str) -> None:
            if not self._step(self._keys, [name, mark, wait]):
                raise LabError(otherwise, cure)

        dead = (
            "This rebuild was taken for dead, or an event did not fit into the new board.",
            "See who rebuilds this board, and look at it before you try again: the last step may "
            "have been done.",
        )
        counted = 0
        try:
            step("begin", "Another rebuild of this board is at work.", "Try again after it.")
            for some in _batches(events, BATCH):
                pipe = self._client.pipeline(transaction=False)
                for event in some:
                    self._submit(self._keys[2:], [*self._words(*event), mark], client=pipe)
                counted += sum(map(self._counted, pipe.execute()))
                step("go on", *dead)
            step("end", *dead)
        except BaseException:
            self._step(self._keys, ["give up", mark, wait])
            raise
        return counted

    def _words(self, event: Any, player: Any, points: Any, at: Any) -> list[Any]:
        """The arguments of SUBMIT."""
        ids = check_text("event", event), check_text("player", player)
        more = whole("number of points", points, *self._range)
        rest = 0
        if self._codec is not None:
            at = whole("time in `at`", at, *self._codec.tie)
            rest = self._codec.encode(self._codec.points[0], at)
        numbers = more, more - self._lowest, rest, self._unit or 1, self._range[1] - self._lowest
        return [*ids, self._keep, self._ends, *numbers]

    def _counted(self, reply: int) -> bool:
        if reply < 0:
            what = f"This total would be above {self._range[1]:,}."
            raise LabError(what, "Nothing was written; declare a wider range, and rebuild.")
        return bool(reply)


def _batches(events: Iterable[Event], size: int) -> Iterator[list[Event]]:
    source = iter(events)
    while batch := list(islice(source, size)):
        yield batch
