"""The generated data sets of ``data/``, and the check that they regenerate byte for byte.

Only integers and ``Random.random`` are used, whose sequence for a seed Python guarantees across
versions; so the files are the same on every machine.
"""

from __future__ import annotations

import difflib
import tempfile
from bisect import bisect
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from random import Random

from labkit.errors import LabError
from labkit.lessons import DATA
from labkit.lessons.claims import claims

SEED = 978
BOOKS = 200
SALES = 20_000
HOUR = 3_600_000  # ms
TITLES = 2_000  # of the week, beside the campaign book
STEADY = 20
CAMPAIGN = "9780441013593"  # the one book that bears its own ISBN: that of the source text
PLAYERS = 200
PLAYS = 2_000
REPEATS = 60  # records that were sent a second time
FROM = 1_796_601_600_000  # Monday, 7 December 2026, 00:00 UTC, in ms: ISO week 2026-W50
WEEK = 168 * HOUR
WEEKS = 7  # 2026-W50 to W53, 2027-W01 to W03
SEASON_2 = 1_798_761_600_000  # Friday, 1 January 2027, 00:00 UTC, in ISO week 2026-W53
_SYLLABLES = "AlBeCaDoElFeGaHaIvJoKaLuMaNeOrPaQuRoSaTi"
_ENDS = ("ana", "bor", "dell", "fin", "gard", "lin", "mon", "nor", "ric", "ven")
_COPIES = (1, 1, 1, 1, 1, 1, 1, 1, 2, 3)  # copies of a sale; one in ten is 2, one in ten 3


def dataset(name: str) -> Path:
    """The path of a data set, such as ``sales.csv``.

    Raises:
        LabError: there is no such file; the near names are given.
    """
    path = DATA / name
    if not path.is_file():
        names = sorted(item.name for item in DATA.glob("*.csv"))
        near = difflib.get_close_matches(name, names, cutoff=0.4) or names
        raise LabError(f"There is no data set {name!r}.", f"There is {', '.join(near)}.")
    return path


def regenerate(folder: Path = DATA) -> list[Path]:
    """Write every generated data set to ``folder`` and return the files."""
    random = Random(SEED)
    books = _isbns(random)
    board: Counter[str] = Counter()
    for _, isbn, copies in _sales(random, books):
        board[isbn] += copies
    return [
        _write(folder / "board.csv", "isbn,copies", ((b, board[b]) for b in sorted(books))),
        _write(folder / "sales.csv", "ms,isbn,copies", _sales(random, books)),
        _write(folder / "week.csv", "day,isbn,copies", _week(Random(SEED + 7))),
        _write(folder / "players.csv", "player,name", _players(Random(SEED + 9))),
        _write(
            folder / "plays.csv",
            "received,event,player,points,at,season",
            _plays(Random(SEED + 10)),
        ),
    ]


def facts(folder: Path = DATA) -> list[str]:
    """What is true of the ledger and the data sets of ``folder``, as ``data/README.md`` says it."""
    board = {isbn: int(copies) for isbn, copies in _read(folder / "board.csv")}
    sales = [(int(ms), isbn, int(copies)) for ms, isbn, copies in _read(folder / "sales.csv")]
    end = Counter(board)
    for _, isbn, copies in sales:
        end[isbn] += copies
    tied = [n for n in Counter(board.values()).values() if n > 1]
    sizes = Counter(copies for *_, copies in sales)
    week = [(int(day), isbn, int(copies)) for day, isbn, copies in _read(folder / "week.csv")]
    days = Counter(isbn for _, isbn, _ in week)
    plain, weighted = Counter[str](), Counter[str]()
    for day, isbn, copies in week:
        plain[isbn] += copies
        weighted[isbn] += day * copies
    sources = Counter((claim.source, claim.id[0]) for claim in claims().values())
    return [
        *(f"| {source} | {letter} | {n} |" for (source, letter), n in sources.items()),
        f"{len(board)} books, {sum(board.values()):,} copies at the start",
        f"{sum(tied)} books share their number of copies with another, in {len(tied)} ties; "
        f"the largest tie has {max(tied)} books",
        f"the most sold book starts with {max(board.values()):,} copies, "
        f"the least sold with {min(board.values()):,}",
        f"{len(sales):,} sales of {len({isbn for _, isbn, _ in sales})} books, "
        f"from {sales[0][0]:,} ms to {sales[-1][0]:,} ms",
        f"{sizes.total():,} sales = " + " + ".join(f"{sizes[n]:,} of {n}" for n in sorted(sizes)),
        f"{sum(copies for *_, copies in sales):,} copies sold in the hour, "
        f"{end.total():,} on the board at its end",
        f"{len(days):,} books in {len(week):,} rows, {plain.total():,} copies",
        "in copies the first five have "
        + ", ".join(str(copies) for _, copies in plain.most_common(5)),
        f"weighted by day, {CAMPAIGN} is number "
        f"{1 + sum(n > weighted[CAMPAIGN] for n in weighted.values())} of all",
        f"{sum(n == 7 for n in days.values()):,} of {len(days):,} books sold on all seven days",
        *_play_facts(_read(folder / "plays.csv"), len(_read(folder / "players.csv"))),
    ]


def _play_facts(rows: list[list[str]], players: int) -> list[str]:
    plays = [(int(got), event, who, int(n), int(at), s) for got, event, who, n, at, s in rows]
    events = {event: (who, points, at, s) for _, event, who, points, at, s in plays}
    late = [(got, at) for got, *_, at, _ in plays if got - at > HOUR]
    best, total = Counter[str](), Counter[str]()
    for who, points, *_ in events.values():
        best[who], total[who] = max(best[who], points), total[who] + points
    seasons = Counter(s for *_, s in events.values())
    week_53 = [s for _, _, at, s in events.values() if _week_of(at) == (2026, 53)]
    facts = [
        f"{players} players, {len(plays):,} records of {len(events):,} events: "
        f"{len(plays) - len(events)} were sent twice",
        f"{len(late)} records came over an hour after the play, "
        f"{sum(_week_of(got) > _week_of(at) for got, at in late)} of them in a later ISO week and "
        f"{sum(got >= SEASON_2 > at for got, at in late)} in the later season",
        f"{seasons['1']:,} events in season 1, {seasons['2']:,} in season 2; {len(week_53)} in ISO "
        f"week 2026-W53, {week_53.count('2')} of them in season 2",
    ]
    for name, board in (("best", best), ("total", total)):
        ties = [n for n in Counter(board.values()).values() if n > 1]
        facts.append(
            f"by their {name}, {sum(ties)} players share their points, in {len(ties)} ties; the "
            f"largest has {max(ties)} players, and the highest {name} is {max(board.values()):,}"
        )
    return facts


def _week_of(ms: int) -> tuple[int, int]:
    year, week, _ = datetime.fromtimestamp(ms // 1000, UTC).isocalendar()
    return year, week


def check(folder: Path = DATA) -> list[str]:
    """Differences between ``folder`` and a fresh generation, and facts its README has wrong."""
    problems = []
    with tempfile.TemporaryDirectory() as fresh:
        for made in regenerate(Path(fresh)):
            kept = folder / made.name
            if not kept.is_file():
                problems.append(f"{made.name} is missing.")
            elif kept.read_bytes() != made.read_bytes():
                old, new = kept.read_bytes().split(b"\n"), made.read_bytes().split(b"\n")
                pairs = enumerate(zip(old, new, strict=False), 1)
                line = next((n for n, (a, b) in pairs if a != b), min(len(old), len(new)) + 1)
                problems.append(f"{made.name} differs from its generator from line {line} on.")
        readme = " ".join((folder / "README.md").read_text(encoding="utf-8").split())
        problems += [f"README.md does not say: {f}." for f in facts(Path(fresh)) if f not in readme]
    return problems


def check_digit(digits: str) -> int:
    """The 13th digit of an ISBN whose first twelve are given (ISO 2108: weights 1, 3, 1, 3 ..)."""
    return -sum(int(d) * (1, 3)[n % 2] for n, d in enumerate(digits)) % 10


def _isbns(random: Random, n: int = BOOKS) -> list[str]:
    """Invented ISBNs of the English group, 978-0, in order of popularity."""
    isbns: dict[str, None] = {}
    while len(isbns) < n:
        digits = "9780" + "".join(str(_below(random, 10)) for _ in range(8))
        isbns[f"{digits}{check_digit(digits)}"] = None
    return list(isbns)


def _sales(random: Random, books: list[str]) -> list[tuple[int, str, int]]:
    """An hour of sales: ms, isbn, copies; the n-th book is asked for in proportion to 1 / n."""
    shares = list(accumulate(1_000_000 // n for n in range(1, len(books) + 1)))
    times = sorted(_below(random, HOUR) for _ in range(SALES))
    return [
        (ms, books[bisect(shares, _below(random, shares[-1]))], _COPIES[_below(random, 10)])
        for ms in times
    ]


def _week(random: Random) -> list[tuple[int, str, int]]:
    """Seven days of sales, by day and isbn: day (1 is the oldest), isbn, copies above 0."""
    rows = [(1, CAMPAIGN, 300)]
    for n, isbn in enumerate(_isbns(random, TITLES)):
        for day in range(1, 8):
            if n < STEADY:
                rows.append((day, isbn, 15 + _below(random, 16)))
            elif copies := _below(random, 4 + 16 * (TITLES - n) // TITLES):
                rows.append((day, isbn, copies))
    return sorted(rows)


def _players(random: Random) -> list[tuple[str, str]]:
    """Player and name: every first syllable with every end, in an order by chance."""
    first = [_SYLLABLES[n : n + 2] for n in range(0, len(_SYLLABLES), 2)]
    names = sorted((random.random(), syllable + end) for syllable in first for end in _ENDS)
    return [(f"p{n:03d}", name) for n, (_, name) in enumerate(names, start=1)]


def _plays(random: Random) -> list[tuple[int, str, str, int, int, int]]:
    """Records in the order in which they came: received, event, player, points, at, season."""
    shares = list(accumulate(1 + _below(random, 20) for _ in range(PLAYERS)))
    skill = [_below(random, 21) for _ in range(PLAYERS)]
    events: dict[str, tuple[int, str, str, int, int, int]] = {}
    while len(events) < PLAYS - REPEATS:
        n = len(events)  # everybody plays once, then the busy more often
        who = n if n < PLAYERS else bisect(shares, _below(random, shares[-1]))
        at = FROM + _below(random, WEEKS * WEEK)
        points = 10 * (1 + skill[who] + _below(random, 30) + _below(random, 30))
        late = _below(random, 20) == 0  # one in twenty was offline, for up to five days
        received = at + 50 + _below(random, 120 * HOUR if late else 3_000)
        event = f"{_below(random, 16**8):08x}"
        events[event] = (received, event, f"p{who + 1:03d}", points, at, 1 + (at >= SEASON_2))
    kept = list(events.values())
    again = {_below(random, len(kept)) for _ in range(REPEATS)}
    while len(again) < REPEATS:
        again.add(_below(random, len(kept)))
    for n in sorted(again):
        received, event, player, points, at, season = kept[n]
        received += 1_000 + _below(random, HOUR)
        kept.append((received, event, player, points, at, season))
    return sorted(kept)


def _below(random: Random, n: int) -> int:
    return int(random.random() * n)


def _write(path: Path, header: str, rows: Iterable[tuple[object, ...]]) -> Path:
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="ascii", newline="\n")
    return path


def _read(path: Path) -> list[list[str]]:
    return [line.split(",") for line in path.read_text(encoding="ascii").splitlines()[1:]]
