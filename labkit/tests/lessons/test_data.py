"""The data sets regenerate byte for byte, and their README tells the truth."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from labkit.errors import LabError
from labkit.lessons import DATA, data
from labkit.lessons.claims import claims


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA, tmp_path / "data"))


def test_the_data_is_what_its_generator_writes() -> None:
    assert data.check() == []


def test_every_seed_writes_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "SEED", data.SEED + 1)
    for path in data.regenerate(tmp_path):
        assert path.read_bytes() != (DATA / path.name).read_bytes()


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("sales.csv", "\n195,", "\n196,", "sales.csv differs from its generator from line 3 on."),
        ("board.csv", "isbn,copies\n", "isbn,copies\r\n", "board.csv differs .* line 1 on."),
        ("week.csv", "9780441013593,300", "9780441013593,301", "week.csv differs from its"),
        ("plays.csv", ",260,", ",270,", "plays.csv differs from its generator from line 2 on."),
        ("players.csv", "p002", "p0O2", "players.csv differs from its generator from line 3 on."),
        ("README.md", "192 players share", "191 players share", "README.md does not say: by their"),
        ("README.md", "60 were sent", "61 were sent", "README.md does not say: 200 players, 2,000"),
        ("README.md", "is number 89", "is number 90", "README.md does not say: weighted by day"),
        ("README.md", "999 of 2,001", "1,100 of 2,001", "README.md does not say: 999 of 2,001"),
        ("README.md", "in 43 ties", "in 44 ties", "README.md does not say: 135 books share"),
        ("README.md", "20,000 sales of", "20,001 sales of", "README.md does not say: 20,000 sales"),
    ],
)
def test_a_change_is_found(copied: Path, name: str, old: str, new: str, problem: str) -> None:
    text = (copied / name).read_bytes().decode()
    assert old in text
    (copied / name).write_bytes(text.replace(old, new, 1).encode())
    [found] = data.check(copied)
    assert re.match(problem, found)


def test_a_cut_and_a_missing_file_are_found(copied: Path) -> None:
    sales = (copied / "sales.csv").read_bytes()
    (copied / "sales.csv").write_bytes(sales.rsplit(b"\n", 2)[0] + b"\n")
    (copied / "board.csv").unlink()
    found = data.check(copied)
    assert found == [
        "board.csv is missing.",
        f"sales.csv differs from its generator from line {data.SALES + 1} on.",
    ]


@pytest.mark.parametrize(
    ("digits", "digit"), [("978030640615", 7), ("978013468599", 1), ("978045152493", 5)]
)
def test_check_digit_of_known_books(digits: str, digit: int) -> None:
    assert data.check_digit(digits) == digit


def test_sales_are_in_order_and_of_books_on_the_board() -> None:
    board = dict(data._read(DATA / "board.csv"))
    sales = data._read(DATA / "sales.csv")
    times = [int(ms) for ms, *_ in sales]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] < data.HOUR
    assert {isbn for _, isbn, _ in sales} == set(board)
    assert list(board) == sorted(board)
    for isbn in board:
        weighted = sum(int(digit) * (1, 3)[n % 2] for n, digit in enumerate(isbn))
        assert len(isbn) == 13
        assert weighted % 10 == 0


def test_popularity_falls_like_zipf() -> None:
    sold = Counter(isbn for _, isbn, _ in data._read(DATA / "sales.csv"))
    first, tenth, hundredth = (sold.most_common()[n - 1][1] for n in (1, 10, 100))
    assert 8 < first / tenth < 12.5
    assert 80 < first / hundredth < 125


def test_the_week_has_the_shape_of_the_published_one() -> None:
    """20 steady sellers, a long tail, and 300 copies of one book on the oldest day (A28)."""
    week = data._read(DATA / "week.csv")
    assert week == sorted(week)
    assert {day for day, *_ in week} == set("1234567")
    assert len({(day, isbn) for day, isbn, _ in week}) == len(week)
    assert [row for row in week if row[1] == data.CAMPAIGN] == [["1", data.CAMPAIGN, "300"]]
    sold: dict[str, list[int]] = {}
    for _, isbn, copies in week:
        sold.setdefault(isbn, []).append(int(copies))
        assert int(isbn[-1]) == data.check_digit(isbn[:-1])
    assert len(sold) == data.TITLES + 1
    del sold[data.CAMPAIGN]
    steady = [copies for copies in sold.values() if min(copies) >= 15 and len(copies) == 7]
    assert len(steady) == data.STEADY
    assert max(map(max, steady)) <= 30
    tail = [copies for copies in sold.values() if copies not in steady]
    assert min(map(min, tail)) == 1
    assert max(map(max, tail)) == 18
    assert max(map(sum, tail)) < min(map(sum, steady))
    assert 0.45 < sum(len(copies) == 7 for copies in sold.values()) / len(sold) < 0.55


def test_the_week_takes_nothing_from_the_other_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "TITLES", 30)
    changed = {p.name for p in data.regenerate(tmp_path) if p.read_bytes() != _stored(p.name)}
    assert changed == {"week.csv"}


def test_players_and_plays() -> None:
    """200 players and 2,000 records, some late, some twice, in the order in which they came."""
    players, plays = data._read(DATA / "players.csv"), data._read(DATA / "plays.csv")
    assert [player for player, _ in players] == [f"p{n:03d}" for n in range(1, 201)]
    assert len({name for _, name in players}) == len(players)
    assert all(name.isalpha() and name.isascii() for _, name in players)
    assert {who for _, _, who, *_ in plays} == {player for player, _ in players}
    came = [int(received) for received, *_ in plays]
    assert came == sorted(came)
    sent: dict[str, list[list[str]]] = {}
    for received, event, *rest in plays:
        assert re.fullmatch("[0-9a-f]{8}", event)
        sent.setdefault(event, []).append([received, *rest])
    twice = [records for records in sent.values() if len(records) > 1]
    assert len(twice) == data.REPEATS
    for first, second in twice:
        assert first[1:] == second[1:]
        assert 1_000 <= int(second[0]) - int(first[0]) < 1_000 + data.HOUR
    end = data.FROM + data.WEEKS * data.WEEK
    for [received, _, points, at, season], *_ in sent.values():
        assert int(points) in range(10, 800, 10)
        assert data.FROM <= int(at) < end
        assert 50 <= int(received) - int(at) < 50 + 120 * data.HOUR
        assert season == str(1 + (int(at) >= data.SEASON_2))


def test_the_seasons_part_in_week_53() -> None:
    weeks = [data._week_of(data.FROM + n * data.WEEK) for n in range(data.WEEKS)]
    assert weeks == [(2026, n) for n in range(50, 54)] + [(2027, n) for n in range(1, 4)]
    for n in range(1, data.WEEKS + 1):
        assert data._week_of(data.FROM + n * data.WEEK - 1) == weeks[n - 1]
    assert data._week_of(data.SEASON_2 - 1) == data._week_of(data.SEASON_2) == (2026, 53)


def test_the_plays_take_nothing_from_the_other_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "PLAYS", 300)
    changed = {p.name for p in data.regenerate(tmp_path) if p.read_bytes() != _stored(p.name)}
    assert changed == {"plays.csv"}


def _stored(name: str) -> bytes:
    return (DATA / name).read_bytes()


def test_the_ledger_is_as_the_readme_says() -> None:
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    kinds = {item.kind for item in claims().values()}
    assert f"{len(claims())} claims." in readme
    assert all(kind in readme for kind in kinds)


def test_the_week_of_the_bookstore_is_as_the_readme_says() -> None:
    rows = [line.split(",") for line in (DATA / "bookshop_week.csv").read_text().splitlines()[1:]]
    days, books = ({row[place] for row in rows} for place in (0, 1))
    copies = sum(int(row[2]) for row in rows)
    said = f"- {len(books)} books in {len(rows)} rows, {copies} copies\n"
    assert said in (DATA / "README.md").read_text(encoding="utf-8")
    assert days == set("123456")
    assert rows == sorted(rows)
    assert all(data.check_digit(book[:-1]) == int(book[-1]) for book in books)


def test_a_data_set_by_name() -> None:
    assert data.dataset("sales.csv").read_text().startswith("ms,isbn,copies\n")
    with pytest.raises(LabError, match=r"There is sales\.csv"):
        data.dataset("sale.csv")
