"""The %%redis transcript against the real redis-cli, byte for byte."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from IPython.testing.globalipapp import start_ipython
from IPython.utils.capture import capture_output

from labkit import connect
from labkit.errors import LabError
from labkit.lessons import transcript
from labkit.lessons.transcript import register, replay, show
from labkit.servers import binaries
from labkit.servers.lab import Lab

CELLS = {
    "scores": r"""
        ZADD z 1 a 2 b 2.5 c 1e300 d -inf e +inf f 0.1 g 9007199254740993 h 1824192940134586 i
        ZRANGE z 0 -1 WITHSCORES
        ZRANGE z 0 -1
        ZSCORE z i
        ZSCORE z missing
        ZMSCORE z a missing f
        ZRANK z b WITHSCORE
        ZRANK z missing WITHSCORE
        ZINCRBY z 0.1 a
        ZADD z GT CH 0 a
        ZADD z XX INCR 1 missing
        ZCARD z
        ZRANGE z 100 200
        ZPOPMIN z 2
        ZMPOP 1 z MIN COUNT 2
        ZMPOP 1 missing MIN
        ZRANGE z (1 5 BYSCORE LIMIT 0 2
        ZRANGE z - [c BYLEX
        ZSCAN z 0
        ZRANDMEMBER missing 3
    """,
    "errors": """
        SET s text
        ZADD s 1 a
        ZADD z abc a
        ZADD z NX GT 1 a
        ZADD z
        NOSUCH command here
        ZADD z nan a
        ZUNIONSTORE o 2 z
        EVAL "return redis.error_reply('MY own words')" 0
        EVAL "return redis.call('NOSUCH')" 0
        EXEC
        CLIENT KILL ID x
    """,
    "nesting": """
        EVAL "return {1,{2,{3,'four'},{}},false,'x'}" 0
        EVAL "return {}" 0
        EVAL "return false" 0
        EVAL "return {{},{{}}}" 0
        EVAL "return {ok='FINE'}" 0
        EVAL "return {1,2,3,4,5,6,7,8,9,10,{11,12}}" 0
        XADD s1 1-1 field value
        XADD s1 1-2 a 1 b 2
        XRANGE s1 - +
        XREAD COUNT 5 STREAMS s1 0
        XINFO STREAM s1
        COMMAND INFO zadd nosuch
    """,
    "transactions": """
        MULTI
        ZADD z 1 a
        ZADD z abc b
        SET s 1
        ZADD s 1 a
        ZRANGE z 0 -1 WITHSCORES
        EXEC
        MULTI
        NOSUCH
        EXEC
        MULTI
        SET s 2
        DISCARD
        GET s
        WATCH s
        UNWATCH
    """,
    "text": """
        SET k "caf\\xc3\\xa9"
        GET k
        SET k café☃
        GET k
        SET k "a\\tb\\nc\\r\\a\\b\\\\ \\"q\\" \\x00\\xff \\q"
        GET k
        STRLEN k
        SET k 'single \\' quote \\n'
        GET k
        SET k back\\slash
        GET k
        SET k ab"c d"
        GET k
        SET "" ''
        GET ""
        SET k {json:"a"}
        SET k "unbalanced
        SET k 'unbalanced
        SET k "a"b
        SET k it's
        PING
        PING "hello  there"
        ECHO ""
        ping
        HSET h f v g "w x"
        HGETALL h
        SADD only one
        SMEMBERS only
        OBJECT ENCODING h
        TYPE nothing
        EXPIRE h 100 NX
        GETRANGE k 0 -1
        LPUSH l a b c
        LRANGE l 0 -1
        SELECT 1
        DBSIZE
        SELECT 99
        GEOADD g 13.361389 38.115556 P
        GEOPOS g P nobody
        GEODIST g P P km
        SET k 5
        INCRBYFLOAT k 0.1
        PFADD p a b c
        PFCOUNT p
        COPY k k2
        DEBUG NOSUCH
    """,
}


@pytest.fixture(scope="module")
def _lab() -> Iterator[Lab]:
    lab = connect("redis")
    yield lab
    lab.close()


@pytest.fixture
def lab(_lab: Lab) -> Lab:
    _lab.reset()
    return _lab


def _lines(cell: str) -> list[str]:
    return [line.strip() for line in cell.strip().splitlines()]


def _redis_cli(lab: Lab, lines: list[str]) -> str:
    program = binaries.ensure("redis").with_name("redis-cli")
    path = lab.redis.connection_pool.connection_kwargs["path"]
    done = subprocess.run(
        [program, "-s", path, "--no-raw"],
        input="\n".join(lines).encode() + b"\n",
        capture_output=True,
        check=True,
        timeout=60,
    )
    return done.stdout.decode(errors="surrogateescape")


@pytest.mark.parametrize("cell", CELLS)
def test_is_what_redis_cli_shows(lab: Lab, cell: str) -> None:
    lines = _lines(CELLS[cell])
    theirs = _redis_cli(lab, lines)
    lab.reset()
    ours = replay(lab, CELLS[cell])
    assert [command for command, _ in ours] == lines
    # redis-cli ends an exchange with a line of its own; whatever it adds, it adds everywhere.
    assert "".join(f"{reply}\n" for _, reply in ours).splitlines() == [
        line for line in theirs.splitlines() if line
    ]


@pytest.mark.parametrize(
    "line",
    ["INFO keyspace", "info modules", "LOLWUT VERSION 5 1 1 1", "MEMORY DOCTOR", "LATENCY DOCTOR"],
)
def test_text_for_people_is_shown_as_it_is(lab: Lab, line: str) -> None:
    ((_, ours),) = replay(lab, line)
    assert ours == _redis_cli(lab, [line]).replace("\r\n", "\n").rstrip("\n")
    assert "\\n" not in ours


def test_blank_lines_and_comments_are_left_out(lab: Lab) -> None:
    cell = "\n# a comment\n   \n  PING  \n\t# another\n#PING\nECHO '# none'\r\n"
    assert replay(lab, cell) == [("PING", "PONG"), ("ECHO '# none'", '"# none"')]
    assert replay(lab, "") == []


def test_a_cell_has_one_connection_and_the_next_cell_another(lab: Lab) -> None:
    assert replay(lab, "SELECT 3\nSET k 1\nMULTI")[-1][1] == "OK"
    assert replay(lab, "GET k") == [("GET k", "(nil)")]
    before = lab.redis.info("clients")["connected_clients"]
    replay(lab, "PING")
    assert lab.redis.info("clients")["connected_clients"] <= before


@pytest.mark.parametrize(
    "line",
    [
        "BLPOP k 0",
        "bzpopmin z 0",
        "SUBSCRIBE c",
        "MONITOR",
        "XREAD BLOCK 0 STREAMS s $",
        '"BLPOP" k "0"',
        "WAIT 1 0",
    ],
)
def test_what_would_wait_for_ever_is_refused_before_anything_is_sent(lab: Lab, line: str) -> None:
    with pytest.raises(LabError, match="would wait for ever in a cell"):
        replay(lab, f"SET k 1\n{line}")
    assert lab.redis.exists("k") == 0


def test_what_waits_for_a_moment_is_sent(lab: Lab) -> None:
    assert replay(lab, "BLPOP k 0.01") == [("BLPOP k 0.01", "(nil)")]


def test_the_other_role(lab: Lab) -> None:
    assert "valkey" in replay(lab, "INFO server", "valkey")[0][1].lower()
    with pytest.raises(LabError, match="knows no server 'dragonfly'"):
        replay(lab, "PING", "dragonfly")


def test_show(lab: Lab) -> None:
    lab.redis.zadd("z", {"a": 1})
    steps = replay(lab, "ZSCORE z a\nZADD z 1\nZRANGE z 0 -1 WITHSCORES", "redis")
    assert show(steps) == (
        'redis> ZSCORE z a\n"1"\n'
        "redis> ZADD z 1\n(error) ERR wrong number of arguments for 'zadd' command\n"
        'redis> ZRANGE z 0 -1 WITHSCORES\n1) "a"\n2) "1"'
    )


def test_the_magic_of_a_real_ipython() -> None:
    shell = start_ipython()
    register()
    lab = connect("redis")
    with capture_output() as said:
        shell.run_cell("%%redis\nSET k 1\n# done\nGET k")
    assert said.stdout == 'redis> SET k 1\nOK\nredis> GET k\n"1"\n'
    assert said.stderr == ""
    assert lab.replies == ["OK", '"1"']
    with capture_output() as said:
        shell.run_cell("%%redis valkey\nEXISTS k")
    assert said.stdout == "valkey> EXISTS k\n(integer) 0\n"
    with capture_output() as said:
        shell.run_cell("%%redis dragonfly\nPING")
    assert said.stdout.strip().splitlines() == [
        "LabError: %%redis knows no server 'dragonfly'. Say `%%redis` or `%%redis valkey`."
    ]
    lab.close()
    with capture_output() as said:
        shell.run_cell("%%redis\nPING")
    assert said.stdout.strip().startswith("LabError: The redis server ended: ")
    assert len(said.stdout.strip().splitlines()) == 1


def test_quoting_never_hangs_or_raises() -> None:
    for text in ('"', "'", "\\", '"\\', "' \\'", "a\"b'c", '"a" "', "\x00", "a" * 10_000 + '"'):
        assert transcript._split(text) is None or transcript._split(text)
