"""The leaderboard against a model in plain Python, on both servers; and what it promises alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Signal
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

from labkit.boards import leaderboard, paging, scripts
from labkit.boards.leaderboard import Event, Leaderboard
from labkit.boards.paging import Standing
from labkit.boards.scores import LIMIT, Composite
from labkit.errors import LabError

Client = Any
SEQUENCES = 1_010  # on each of the two servers: at least 2,000 in all
NAMES = ["", "Z", "a", "aa", "é", "p10", "p9", "𝄞"]
CODEC = Composite(points=(0, 4_000), tie=(0, 2**41 - 1))  # up to 2^53, so that a digit lost shows
LATEST = CODEC.tie[1]
SECRET = b"0123456789abcdef"


class Model:
    """What a board must answer: lists and dictionaries, and no server."""

    def __init__(self, keep: str, ties: str, window: str, codec: Composite | None) -> None:
        self.keep, self.ties, self.window, self.codec = keep, ties, window, codec
        self.log: dict[str, Event] = {}
        self.board: dict[str, tuple[int, int]] = {}  # player -> points, at

    def submit(self, *event: Any) -> bool:
        if event[0] in self.log:
            return False
        self.log[event[0]] = event
        self._add(*event[1:])
        return True

    def _add(self, player: str, points: int, at: int) -> None:
        old = self.board.get(player)
        if old is None:
            self.board[player] = (points, at)
        elif self.keep == "sum":
            self.board[player] = (old[0] + points, max(old[1], at))
        else:
            self.board[player] = min(old, (points, at), key=lambda pair: (-pair[0], pair[1]))

    def rows(self, ties: str = "") -> list[Standing]:
        def order(item: tuple[str, tuple[int, int]]) -> Any:
            player, (points, at) = item
            return points, -at if self.codec else 0, player.encode()

        ranked = sorted(self.board.items(), key=order, reverse=True)
        scores = [points for _, (points, _) in ranked]
        ranks = {
            "ordinal": list(range(1, len(scores) + 1)),
            "competition": [1 + sum(other > mine for other in scores) for mine in scores],
            "dense": [1 + len({other for other in scores if other > mine}) for mine in scores],
        }[ties or self.ties]
        return [
            Standing(rank, player, points, at if self.codec else None)
            for rank, (player, (points, at)) in zip(ranks, ranked, strict=True)
        ]

    def rank(self, player: str) -> Standing | None:
        return next((row for row in self.rows() if row.player == player), None)

    def page(self, number: int, size: int) -> list[Standing]:
        return self.rows()[(number - 1) * size : number * size]

    def around(self, player: str, each: int) -> list[Standing]:
        rows = self.rows()
        if player not in self.board:
            return []
        at = next(n for n, row in enumerate(rows) if row.player == player)
        if self.window == "clamp":
            return rows[max(0, at - each) : at + each + 1]
        windows = [rows[n : n + 2 * each + 1] for n in range(max(1, len(rows) - 2 * each))]
        # Of all windows of this width: the one whose middle is nearest to the player.
        return min(enumerate(windows), key=lambda pair: abs(pair[0] + each - at))[1]

    def percentile(self, player: str) -> float | None:
        if player not in self.board:
            return None
        mine, _ = self.board[player]
        at_most = sum(points <= mine for points, _ in self.board.values())
        return 100 * at_most / len(self.board)

    def trim(self, n: int, ties: str) -> int:
        rows, before = self.rows(), len(self.board)
        edge = rows[:n][-1].points if rows else 0
        stay = [r for k, r in enumerate(rows) if k < n or (ties == "keep" and r.points == edge)]
        self.board = {row.player: self.board[row.player] for row in stay}
        return before - len(self.board)

    def rebuild(self) -> int:
        self.board = {}
        for _, player, points, at in self.log.values():
            self._add(player, points, at)
        return len(self.log)


POINTS, TIMES = (0, 1, 2, 3, 9, 60), (0, 1, 2, LATEST - 2, LATEST - 1, LATEST)


def event_of(number: int) -> Event:
    """One number rather than four: to draw it is a fourth of the time."""
    number, point = divmod(number, len(POINTS))
    number, time = divmod(number, len(TIMES))
    id, name = divmod(number, len(NAMES))
    return f"e{id}", NAMES[name], POINTS[point], TIMES[time]


names = st.sampled_from(NAMES)
events = st.integers(0, 30 * len(NAMES) * len(TIMES) * len(POINTS) - 1).map(event_of)
submits = st.lists(st.tuples(st.just("submit"), events), min_size=2, max_size=6)
others = st.one_of(
    st.tuples(st.just("rank"), st.tuples(names)),
    st.tuples(st.just("page"), st.tuples(st.integers(1, 4), st.integers(1, 9))),
    st.tuples(st.just("around"), st.tuples(names, st.integers(0, 4))),
    st.tuples(st.just("percentile"), st.tuples(names)),
    st.tuples(st.just("trim"), st.tuples(st.integers(1, 9), st.sampled_from(["cut", "keep"]))),
    st.tuples(st.just("walk"), st.tuples(st.integers(1, 9))),
    st.tuples(st.just("rebuild"), st.just(())),
)
# Rounds: some events, then questions and changes.
sequences = st.lists(
    st.tuples(submits, st.lists(others, min_size=1, max_size=4)), min_size=2, max_size=3
).map(lambda rounds: [step for some, more in rounds for step in (*some, *more)])
policies = st.tuples(
    st.sampled_from(["best", "sum"]),
    st.sampled_from(["ordinal", "competition", "dense"]),
    st.sampled_from(["clamp", "fill"]),
    st.sampled_from([None, CODEC]),
)


def walk(board: Leaderboard, size: int) -> Iterator[list[Standing]]:
    cursor: str | None = board.snapshot(size, 60)
    while cursor is not None:
        rows, cursor = board.follow(cursor)
        yield rows


def play(client: Client, policy: Any, sequence: list[Any]) -> None:
    """The same operations on a board and on the model; every answer is compared."""
    client.flushdb()
    keep, ties, window, codec = policy
    board = Leaderboard(
        client, "b", keep=keep, ties=ties, window=window, codec=codec, secret=SECRET
    )
    model = Model(*policy)
    for name, arguments in sequence:
        if name == "walk":
            rows, size = model.rows(), arguments[0]
            pages = [rows[n : n + size] for n in range(0, len(rows), size)] or [[]]
            assert list(walk(board, size)) == pages
        elif name == "rebuild":
            assert board.rebuild(model.log.values()) == model.rebuild()
        else:
            assert getattr(board, name)(*arguments) == getattr(model, name)(*arguments), name
    assert board.page(1, 100) == model.rows()


def test_any_sequence_gives_the_answers_of_the_model(either: Client) -> None:
    played = 0

    @settings(
        max_examples=SEQUENCES,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(policy=policies, sequence=sequences)
    def check(policy: Any, sequence: list[Any]) -> None:
        nonlocal played
        play(either, policy, sequence)
        played += 1

    check()
    assert played >= 1_000


def mutated(name: str, old: str, new: str) -> Callable[[pytest.MonkeyPatch], None]:
    def change(patch: pytest.MonkeyPatch) -> None:
        text = getattr(scripts, name)
        assert old in text
        user = paging if name == "ROWS" else leaderboard
        patch.setattr(user, name, text.replace(old, new))

    return change


@pytest.mark.parametrize(
    "change",
    [
        mutated("ROWS", "from + 1", "from"),
        mutated("ROWS", "unit - 1", "0"),
        mutated("ROWS", "'(%.17g'", "'(%.14g'"),
        mutated("ROWS", "size - 1 - wide", "size - wide"),
        mutated("ROWS", "math.max(0, first), first", "first, first"),
        mutated("SUBMIT", "math.min(rest, before)", "rest"),
        mutated("SUBMIT", "or score > old", "or score >= 0"),
        mutated("SUBMIT", "redis.call('SADD', ids, event)", ""),
        mutated("TRIM", "-2 - last", "-1 - last"),
        mutated("TRIM", "'(%.17g'", "'%.17g'"),
        mutated("STEP", "for n = 1,", "for n = 2,"),
    ],
)
def test_the_model_sees_a_mistake(
    redis_client: Client, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    change(monkeypatch)

    @settings(
        max_examples=1_500, deadline=None, database=None, phases=[Phase.generate], derandomize=True
    )
    @given(policy=policies, sequence=sequences)
    def check(policy: Any, sequence: list[Any]) -> None:
        play(redis_client, policy, sequence)

    with pytest.raises((AssertionError, redis.ResponseError, LabError)):
        check()


def board_of(client: Client, **settings: Any) -> Leaderboard:
    settings = {"keep": "sum", "ties": "competition", "window": "clamp", **settings}
    return Leaderboard(client, settings.pop("key", "b"), **settings)


def test_late_and_repeated_events_change_nothing(either: Client) -> None:
    """Every order of the same events, each sent twice, gives the same board."""
    sent = [("1", "a", 5, 10), ("2", "b", 5, 9), ("3", "a", 2, 3), ("4", "b", 2, 30)]
    for keep in ("best", "sum"):
        seen = set()
        for order in itertools.permutations(sent):
            either.flushdb()
            board = board_of(either, keep=keep, codec=CODEC)
            replies = [board.submit(*event) for event in (*order, *order)]
            assert replies == [True] * 4 + [False] * 4
            seen.add(tuple(board.top(9)))
        [rows] = seen
        # Best: 5 points each, b was earlier. Sum: 7 each, a came to them at 10, b at 30.
        assert [row.player for row in rows] == (["b", "a"] if keep == "best" else ["a", "b"])
        assert [row.rank for row in rows] == [1, 1]


def test_an_event_counts_once_whoever_sends_it(either: Client) -> None:
    board = board_of(either)

    def send(_: int) -> int:
        return sum(board.submit(f"e{k}", f"p{k % 7}", 1, 0) for k in range(100))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(send, range(8))) == 100
    assert sum(row.points for row in board.top(10)) == 100


@pytest.mark.parametrize("attempt", range(4))
def test_a_rebuild_loses_nothing_while_others_write(either: Client, attempt: int) -> None:
    """Four writers go on from before the first step until after the last one."""
    board = board_of(either, codec=CODEC)
    log: list[Event] = []
    for n in range(300):
        log.append((f"old{n}", f"p{n % 20}", n % 7, n))
        board.submit(*log[-1])
    either.delete(board.key)  # the loss that makes a rebuild needed
    rebuilt, numbers = Signal(), itertools.count()

    def write(_: int) -> None:
        left = 40
        while left:
            n = next(numbers)
            event = (f"new{n}", f"p{n % 23}", n % 5, 1_000 + n)
            log.append(event)  # to the log first
            board.submit(*event)
            board.submit(*log[n % len(log)])  # sent again, whichever
            left -= rebuilt.is_set()

    def replayed() -> Iterator[Event]:
        """What is in the log when the first event is asked for, slowly."""
        while next(numbers) < 50 * (attempt + 1):
            pass
        yield from list(log)

    with ThreadPoolExecutor(5) as pool:
        writers = [pool.submit(write, writer) for writer in range(4)]
        try:
            board.rebuild(replayed())
        finally:
            rebuilt.set()
        for writer in writers:
            writer.result()
    model = Model("sum", "competition", "clamp", CODEC)
    for event in log:
        model.submit(*event)
    assert board.top(100) == model.rows()
    assert sorted(either.keys("*")) == ["b", "{b}:ids"]


@pytest.mark.parametrize("twice", [True, False])
def test_the_second_write_is_what_saves_an_event(
    either: Client, monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    if not twice:
        once = scripts.SUBMIT.replace("KEYS[5] and", "false and")
        monkeypatch.setattr(leaderboard, "SUBMIT", once)
    board = board_of(either)
    log = [("1", "a", 5, 0)]

    def replayed() -> Iterator[Event]:
        yield from log
        assert board.submit("2", "b", 7, 0)  # after the log was read

    board.rebuild(replayed())
    assert [row.player for row in board.top(9)] == (["b", "a"] if twice else ["a"])


def test_one_rebuild_at_a_time(either: Client) -> None:
    board, other = board_of(either), board_of(either)
    board.submit("1", "a", 5, 0)

    def second() -> Iterator[Event]:
        with pytest.raises(LabError, match="Another rebuild of this board is at work"):
            other.rebuild([])
        yield "1", "a", 5, 0

    assert board.rebuild(second()) == 1
    assert other.rebuild([("2", "b", 1, 0)]) == 1
    assert [row.player for row in board.top(9)] == ["b"]


def test_a_rebuild_that_was_taken_for_dead_changes_nothing(either: Client) -> None:
    board = board_of(either)
    board.submit("1", "a", 5, 0)

    def slow() -> Iterator[Event]:
        yield from ((f"e{n}", "b", 1, 0) for n in range(leaderboard.BATCH))
        either.pexpireat("{b}:mark", 1)  # its patience is over
        yield "2", "b", 1, 0

    with pytest.raises(LabError, match="taken for dead"):
        board.rebuild(slow())
    assert [row.player for row in board.top(9)] == ["a"]
    assert not board.submit("1", "a", 5, 0)
    assert _keys(either) == ["b", "{b}:ids"], "it left something behind"


def test_what_a_killed_rebuild_left_is_cleared_away(either: Client) -> None:
    either.zadd("{b}:next", {"ghost": 99})
    either.sadd("{b}:next:ids", "1")
    board = board_of(either)
    assert board.rebuild([("1", "a", 5, 0)]) == 1
    assert [row.player for row in board.top(9)] == ["a"]
    assert _keys(either) == ["b", "{b}:ids"]


def test_a_dead_rebuild_writes_nothing_into_the_next_one(either: Client) -> None:
    """Its events are on their way when the next one has begun."""
    first, second = board_of(either), board_of(either)
    first.submit("1", "a", 5, 0)
    asked, begun = Signal(), Signal()

    def late() -> Iterator[Event]:
        asked.set()
        begun.wait(60)
        yield "wrong", "ghost", 99, 0

    def events() -> Iterator[Event]:
        begun.set()
        with pytest.raises(LabError, match="taken for dead"):
            dead.result(60)
        yield "1", "a", 5, 0

    with ThreadPoolExecutor(1) as pool:
        dead = pool.submit(first.rebuild, late())
        assert asked.wait(60)
        either.pexpireat("{b}:mark", 1)
        assert second.rebuild(events()) == 1
    assert [row.player for row in second.top(9)] == ["a"]
    assert _keys(either) == ["b", "{b}:ids"]


def test_every_step_renews_the_patience(either: Client) -> None:
    board = board_of(either)

    def events() -> Iterator[Event]:
        assert 0 < either.pttl("{b}:mark") <= 7_000
        either.pexpire("{b}:mark", 500_000)
        yield from ((f"e{n}", "b", 1, 0) for n in range(leaderboard.BATCH))
        assert 0 < either.pttl("{b}:mark") <= 7_000
        yield "last", "b", 1, 0

    assert board.rebuild(events(), patience=7) == leaderboard.BATCH + 1


def test_what_submit_says_no_to_is_not_on_the_new_board(either: Client) -> None:
    """What it has counted before is: the log may be without it."""
    board = board_of(either, codec=CODEC)
    board.submit("1", "a", 4_000, 0)
    board.submit("2", "b", 7, 0)

    def events() -> Iterator[Event]:
        with pytest.raises(LabError, match="above 4,000"):
            board.submit("3", "a", 1, 0)
        assert not board.submit("2", "b", 7, 0)
        yield "4", "c", 1, 0

    board.rebuild(events())
    assert [(row.player, row.points) for row in board.top(9)] == [("b", 7), ("c", 1)]


def test_a_new_board_without_an_event_never_becomes_the_live_one(either: Client) -> None:
    """The live board was trimmed, so it has room for what the new one has not."""
    board = board_of(either, codec=Composite((0, 10), (0, 9)))
    board.submit("1", "a", 6, 0)
    board.submit("2", "b", 7, 0)
    board.trim(1, "cut")

    def events() -> Iterator[Event]:
        yield "1", "a", 6, 0
        yield from ((f"x{n}", f"p{n}", 1, 0) for n in range(leaderboard.BATCH - 1))
        assert board.submit("3", "a", 6, 0)
        yield "4", "c", 1, 0

    with pytest.raises(LabError, match=r"or an event did not fit into the new board\. See who"):
        board.rebuild(events())
    assert [row.player for row in board.top(9)] == ["b", "a"]
    assert _keys(either) == ["b", "{b}:ids"]


def lose_the_reply(client: Client, patch: pytest.MonkeyPatch, word: str) -> None:
    """Of the next script with this word in it: it is done, and its reply does not come."""
    link: Any = client.connection_pool.connection_class
    send, read, armed = link.send_packed_command, link.read_response, [False]

    def sent(self: Any, command: Any, *args: Any, **options: Any) -> Any:
        text = b"".join(command) if isinstance(command, list) else command
        if f"\r\n{word}\r\n".encode() in text and b"EVALSHA" in text:
            armed[0] = True
        return send(self, command, *args, **options)

    def received(self: Any, *args: Any, **options: Any) -> Any:
        reply = read(self, *args, **options)
        if armed[0]:
            patch.undo()
            self.disconnect()
            raise redis.ConnectionError("the reply is lost")
        return reply

    patch.setattr(link, "send_packed_command", sent)
    patch.setattr(link, "read_response", received)


@pytest.mark.parametrize("retries", [0, 3])
def test_a_lost_reply(either: Client, monkeypatch: pytest.MonkeyPatch, retries: int) -> None:
    either.set_retry(Retry(NoBackoff(), retries))
    board = board_of(either)
    board.submit("1", "a", 5, 0)
    board.rebuild([("1", "a", 5, 0)])  # the server knows the scripts now
    lose_the_reply(either, monkeypatch, "begin")
    if retries:
        assert board.rebuild([("2", "b", 5, 0)]) == 1
    else:
        with pytest.raises(redis.ConnectionError):
            board.rebuild([("2", "b", 5, 0)])
        assert board.rebuild([("2", "b", 5, 0)]) == 1, "its own mark keeps everybody out"
    lose_the_reply(either, monkeypatch, "end")
    with pytest.raises(LabError if retries else redis.ConnectionError) as error:
        board.rebuild([("3", "c", 5, 0)])
    assert not retries or "the last step may have been done" in str(error.value)
    assert [row.player for row in board.top(9)] == ["c"]
    assert _keys(either) == ["b", "{b}:ids"]
    if retries:
        lose_the_reply(either, monkeypatch, "again")
        assert not board.submit("again", "c", 1, 0), "the second time it was counted before"
        assert board.rank("c") == Standing(1, "c", 6)


def test_a_dead_rebuild_leaves_the_mark_to_the_next_one(either: Client) -> None:
    first, second = board_of(either), board_of(either)

    def dies() -> Iterator[Event]:
        either.pexpireat("{b}:mark", 1)
        assert second.rebuild([("2", "b", 1, 0)]) == 1
        yield "1", "a", 5, 0

    with pytest.raises(LabError, match="taken for dead"):
        first.rebuild(dies())
    assert [row.player for row in second.top(9)] == ["b"]
    assert sorted(either.keys("*")) == ["b", "{b}:ids"]
    assert second.rebuild([("3", "c", 1, 0)]) == 1
    assert [row.player for row in second.top(9)] == ["c"]
    assert sorted(either.keys("*")) == ["b", "{b}:ids"]


@pytest.mark.parametrize(
    "bad", [[("1", "a", 1, 0), ("2", "b", -1, 0)], [("1", "a", LIMIT - 1, 0), ("2", "a", 1, 0)]]
)
def test_a_bad_event_stops_a_rebuild_and_the_board_stays(either: Client, bad: list[Event]) -> None:
    board = board_of(either)
    board.submit("9", "z", 5, 0)
    with pytest.raises(LabError):
        board.rebuild(bad)
    assert sorted(either.keys("*")) == ["b", "{b}:ids"]
    assert [row.player for row in board.top(9)] == ["z"]


def test_a_total_that_no_score_holds_is_refused_whole(either: Client) -> None:
    plain, packed = board_of(either), board_of(either, key="c", codec=CODEC)
    for board, most in ((plain, LIMIT - 1), (packed, 4_000)):
        assert board.submit("1", "a", most, 7)
        before = board.rank("a")
        with pytest.raises(LabError, match=f"above {most:,}"):
            board.submit("2", "a", 1, 8)
        assert board.rank("a") == before
        assert board.submit("2", "b", 1, 8), "a refused event was taken for counted"


@pytest.mark.parametrize("codec", [None, CODEC])
def test_all_digits_are_kept(either: Client, codec: Composite | None) -> None:
    board = board_of(either, codec=codec, ties="dense")
    high = 4_000 if codec else LIMIT - 1
    assert board.submit("1", "a", high - 3, LATEST - 2)
    for n in (1, 2):
        assert board.submit(f"a{n}", "a", 1, LATEST - n)
    assert board.submit("2", "b", high - 2, LATEST)
    assert board.submit("3", "c", high, 0)
    at = (0, LATEST - 1, LATEST) if codec else (None, None, None)
    assert board.top(9) == [
        Standing(1, "c", high, at[0]),
        Standing(2, "a", high - 1, at[1]),
        Standing(3, "b", high - 2, at[2]),
    ]


@pytest.mark.parametrize("ties", ["competition", "dense"])
def test_one_point_more_in_the_last_moment_is_more(either: Client, ties: Any) -> None:
    """The lowest score of the next number of points, right above all that share this one."""
    board = board_of(either, codec=CODEC, ties=ties)
    board.submit("1", "a", 7, 0)
    board.submit("2", "b", 8, LATEST)
    assert either.zscore("b", "b") == either.zscore("b", "a") + 1
    assert board.rank("a") == Standing(2, "a", 7, 0)
    assert board.trim(1, "keep") == 1


def test_points_below_zero(either: Client) -> None:
    board = board_of(either, keep="best", ties="dense")
    for n, score in enumerate((-5, -5, 1 - LIMIT, 0)):
        assert board.submit(f"{n}", f"p{n}", score, 0)
    assert [(row.rank, row.points) for row in board.top(9)] == [
        (1, 0),
        (2, -5),
        (2, -5),
        (3, 1 - LIMIT),
    ]
    low = board_of(either, key="c", keep="best", codec=Composite((-10, 10), (0, 99)))
    assert low.submit("1", "a", -10, 5)
    assert low.rank("a") == Standing(1, "a", -10, 5)
    for other in (board_of(either), board_of(either, codec=Composite((-10, 10), (0, 99)))):
        with pytest.raises(LabError, match=r"The number of points is -1\. It goes from 0"):
            other.submit("1", "a", -1, 5)


def test_a_board_of_a_period_ends_with_its_ids(either: Client) -> None:
    board = board_of(either, ends=4_102_444_800_000)
    board.submit("1", "a", 1, 0)
    assert board.rebuild([("1", "a", 1, 0)]) == 1
    board.trim(1, "cut")
    lives = [either.pexpiretime(key) if _has(either) else either.pttl(key) for key in _keys(either)]
    assert len(lives) == 2
    assert min(lives) > 0
    over = board_of(either, key="over", ends=1)
    assert not over.submit("1", "a", 1, 0), "nothing of it stands"
    assert over.rebuild([("1", "a", 1, 0)]) == 0
    assert _keys(either) == ["b", "{b}:ids"]


def _keys(client: Client) -> list[str]:
    return sorted(client.keys("*"))


def _has(client: Client) -> bool:
    return "pexpiretime" in client.command_list()


@pytest.mark.parametrize("key", ["b", "{game}:week", "x{game}y", "a b", "{a}{b}", "{{a}}"])
def test_all_keys_of_a_board_lie_in_one_slot(redis_client: Client, key: str) -> None:
    board = board_of(redis_client, key=key, secret=SECRET)
    board.submit("1", "a", 1, 0)
    board.snapshot(1, 60)
    seen: set[str] = set()

    def look() -> Iterator[Event]:
        board.submit("2", "a", 1, 0)
        seen.update(redis_client.keys("*"))
        yield "1", "a", 1, 0

    board.rebuild(look())
    assert len(seen) == 6
    assert key in seen
    assert len({key_slot(name.encode()) for name in seen}) == 1


WORDS: list[tuple[dict[str, Any], str]] = [
    ({"keep": "last"}, "The policy of keep is 'last'. Say 'best' or 'sum'."),
    ({"ties": "shared"}, "The policy of ties is 'shared'. Say 'ordinal' or 'competition' or"),
    ({"window": "wrap"}, "The policy of window is 'wrap'. Say 'clamp' or 'fill'."),
    ({"codec": Composite((0, 9), (0, 9), "high")}, "This codec has the later one first."),
    ({"codec": Composite((5, 100), (0, 9))}, "A sum begins at 0, outside the codec's points."),
    ({"codec": Composite((-10, -1), (0, 9))}, "Declare them from 0."),
    ({"key": ""}, "The key '' is empty. Write {tag}:name."),
    ({"key": b"b"}, "The key is b'b'. Pass text (a str)."),
    ({"key": "a}b"}, "The key 'a}b' has braces and no hash tag. Write {tag}:name."),
    ({"key": "{}b"}, "has braces and no hash tag"),
    ({"key": "b{"}, "has braces and no hash tag"),
    ({"key": "b{c"}, "has braces and no hash tag"),
    ({"ends": 1.5}, "The end is 1.5. Pass a whole number (an int)."),
    ({"ends": 0}, "The end is 0. It goes from 1 to"),
    ({"largest": 0}, "The largest page is 0. It goes from 1 to 1,000,000."),
]


@pytest.mark.parametrize(("settings", "sentence"), WORDS)
def test_arguments_that_are_refused(
    redis_client: Client, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(LabError) as error:
        board_of(redis_client, **settings)
    assert sentence in str(error.value)


def test_a_client_of_bytes_is_refused(redis_client: Client) -> None:
    kwargs = {**redis_client.connection_pool.connection_kwargs, "decode_responses": False}
    pool = redis.ConnectionPool(redis_client.connection_pool.connection_class, **kwargs)
    with pytest.raises(LabError, match="decode_responses=True"):
        board_of(redis.Redis.from_pool(pool))


BOUNDS: list[tuple[Callable[[Any], object], str]] = [
    (
        lambda b: b.submit("1", "a", 1.0, 0),
        "The number of points is 1.0. Pass a whole number (an int).",
    ),
    (lambda b: b.submit("1", "a", True, 0), "is True. Pass a whole number"),
    (lambda b: b.submit("1", "a", LIMIT, 0), "It goes from 0 to"),
    (
        lambda b: b.submit("1", "a", 1, LATEST + 1),
        "The time in `at` is 2199023255552. It goes from 0",
    ),
    (
        lambda b: b.submit("1", "a", 1, None),
        "The time in `at` is None. Pass a whole number (an int).",
    ),
    (lambda b: b.submit(1, "a", 1, 0), "The event is 1. Pass text (a str)."),
    (lambda b: b.submit("1", b"a", 1, 0), "The player is b'a'. Pass text (a str)."),
    (lambda b: b.submit("1", "\ud800", 1, 0), "The player is '\\ud800'. Pass text (a str)."),
    (lambda b: b.trim(0, "cut"), "The number to be left is 0. It goes from 1 to"),
    (lambda b: b.trim(-3, "cut"), "The number to be left is -3."),
    (lambda b: b.trim(1, "drop"), "The policy of ties is 'drop'. Say 'cut' or 'keep'."),
    (lambda b: b.rebuild([], patience=0), "The patience is 0. It goes from 1 to 86,400."),
]


@pytest.mark.parametrize(("call", "sentence"), BOUNDS)
def test_bounds(redis_client: Client, call: Any, sentence: str) -> None:
    board = board_of(redis_client, codec=CODEC)
    board.submit("0", "z", 1, 0)
    with pytest.raises(LabError) as error:
        call(board)
    assert sentence in str(error.value)
    assert _keys(redis_client) == ["b", "{b}:ids"]
    assert board.top(9) == [Standing(1, "z", 1, 0)]
