"""A lesson on a server of somebody else: its own database, and every other one untouched."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator

import pytest
import redis

from labkit.errors import LabError
from labkit.lessons.transcript import replay
from labkit.servers import embedded
from labkit.servers.lab import Lab, connect
from labkit.servers.space import MARKER, open_client, shared_space
from labkit.tests.servers.processes import free_port, owner, said, shared_server, until

READS = {
    "hello",
    "dbsize",
    "select",
    "client|setname",
    "info",
    "exists",
    "client|setinfo",
    "ping",
    "auth",
}


@pytest.fixture(scope="module", params=["redis", "valkey"])
def _server(request: pytest.FixtureRequest) -> Iterator[str]:
    with shared_server(role=request.param) as url:
        yield url


@pytest.fixture
def url(_server: str) -> str:
    """A shared server without keys."""
    with open_client(_server) as client:
        client.flushall()
        client.config_set("maxmemory", 0)
        client.config_resetstat()
    return _server


def _contents(url: str) -> dict[int, dict[str, tuple[str, object]]]:
    """Every key of every database: its value as the server dumps it, and its expiry time."""
    found = {}
    with open_client(url) as look:
        numbers = [int(name[2:]) for name in look.info("keyspace")]
    for number in numbers:
        with open_client(url, database=number, decode_responses=False) as one:
            keys = one.keys()
            found[number] = {str(k): (repr(one.dump(k)), one.expiretime(k)) for k in keys}
    return found


def _fill(url: str, *databases: int) -> None:
    for number in databases:
        with open_client(url, database=number) as client:
            client.zadd("board", {"theirs": number})
            client.set("text", "theirs", ex=10_000)


def _lab(url: str, *, foreign: bool = False) -> Lab:
    return Lab(url, allow_foreign=foreign)


def _sent(url: str) -> dict[str, int]:
    """How often each command was called on a server since the last CONFIG RESETSTAT."""
    with open_client(url) as client:
        stats = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): facts["calls"] for name, facts in stats.items()}


def test_foreign_keys_are_refused_and_nothing_is_written(url: str) -> None:
    _fill(url, 0, 5)
    before = _contents(url)
    with open_client(url) as client:
        client.config_resetstat()
    with pytest.raises(LabError, match=r"holds keys that are not the lab's \(4 of them\)"):
        _lab(url)
    assert set(_sent(url)) - {"config|resetstat", "config"} <= READS
    assert _contents(url) == before


def test_the_others_databases_stay_as_they_are(url: str) -> None:
    _fill(url, 0, 1, 14, 15)
    before = _contents(url)
    lab = _lab(url, foreign=True)
    lab.redis.zadd("board", {f"m{n}": n for n in range(5000)})
    lab.redis.set("text", "mine")
    lab.reset()
    assert lab.redis.keys() == [MARKER]
    lab.redis.zadd("board", {"again": 1})
    lab.close()
    assert _contents(url) == before


def test_an_empty_server_is_empty_again(url: str) -> None:
    lab = _lab(url)
    lab.redis.set("mine", 1)
    assert lab.redis.client_info()["db"] != 0  # where programs that name no database are
    lab.close()
    assert _contents(url) == {}


def test_the_database_of_the_url_is_the_only_one(url: str) -> None:
    lab = _lab(f"{url}/7")
    assert lab.redis.client_info()["db"] == 7
    with pytest.raises(LabError, match=r"No database .* is free"):
        _lab(f"{url}/7")
    lab.close()
    _lab(f"{url}?db=7").close()


def test_labs_side_by_side_do_not_see_each_other(url: str) -> None:
    first, second = _lab(url), _lab(url)
    first.redis.set("key", "first")
    assert second.redis.get("key") is None
    second.redis.set("key", "second")
    second.reset()
    assert first.redis.get("key") == "first"
    second.close()
    assert first.redis.get("key") == "first"
    first.close()
    assert _contents(url) == {}


def test_many_labs_that_start_at_once_have_a_database_each(url: str) -> None:
    labs: list[Lab] = []
    threads = [threading.Thread(target=lambda: labs.append(_lab(url))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({lab.redis.client_info()["db"] for lab in labs}) == 8
    for lab in labs:
        lab.close()


def test_all_databases_taken_is_one_sentence(url: str) -> None:
    labs = [_lab(url) for _ in range(16)]
    with pytest.raises(LabError, match=r"No database of the server at .* is free"):
        _lab(url)
    for lab in labs:
        lab.close()
    assert _contents(url) == {}


HOLD = """
import os, sys
from labkit import connect
lab = connect(os.environ["URL"])
lab.redis.set("left", 1)
print(lab.redis.client_info()["db"], flush=True)
sys.stdin.readline()
"""


def test_the_database_of_a_dead_holder_is_taken_over(url: str) -> None:
    with owner(HOLD, URL=f"{url}/3") as process:
        assert said(process) == "3"
        process.kill()
        process.wait(timeout=30)
    lab = None

    def taken() -> bool:  # the server needs a moment to see that the connection is gone
        nonlocal lab
        with contextlib.suppress(LabError):
            lab = _lab(f"{url}/3")
        return lab is not None

    assert until(taken)
    assert lab is not None
    lab.close()
    assert _contents(url) == {}


def test_a_holder_that_lost_its_idle_connection_keeps_its_database(url: str) -> None:
    with owner(HOLD, URL=f"{url}/3") as process:
        said(process)
        with open_client(url) as client:
            for other in client.client_list():
                if other["name"].startswith("labkit-"):
                    client.client_kill_filter(_id=other["id"])
        with pytest.raises(LabError, match="is free"):
            _lab(f"{url}/3")
        print("", file=process.stdin, flush=True)
        process.wait(timeout=30)
    assert _contents(url) == {}


def test_rights_that_lack_half_way_take_no_database(url: str) -> None:
    with open_client(url) as client:
        rights = ["+@all", "-info", "+info|keyspace", "~*", "&*"]
        client.execute_command("ACL", "SETUSER", "u", "on", ">pw", *rights)
    try:
        with pytest.raises(LabError, match="does not let the lab work"):
            _lab(url.replace("//", "//u:pw@"))
        assert _contents(url) == {}
    finally:
        with open_client(url) as client:
            client.acl_deluser("u")


REFUSED = [
    ("FLUSHALL",),
    ("flushall", "ASYNC"),
    ("FLUSHDB",),
    ("SWAPDB", 0, 1),
    ("SELECT", 0),
    ("SELECT",),
    ("MOVE", "k", 0),
    ("COPY", "k", "k2", "DB", 0),
    ("COPY", "k", "k2", "REPLACE", "db", "0"),
    ("SHUTDOWN", "NOSAVE"),
    ("RESET",),
    ("MIGRATE", "127.0.0.1", 1, "k", 0, 100),
    ("REPLICAOF", "127.0.0.1", 1),
    ("DEBUG", "RELOAD"),
    ("SCRIPT", "FLUSH"),
    ("FUNCTION", "FLUSH"),
    ("CONFIG", "REWRITE"),
    ("CONFIG RESETSTAT",),
    ("EVAL", "return redis.call('FLUSHALL')", 0),
    ("EVAL", 'redis.call("select", 0) return redis.call("set", "a", 1)', 0),
    (b"FLUSHALL",),
    ("SCRIPT LOAD", "return redis.call('flushdb')"),
    ("EVAL", "return redis.call([[FLUSHALL]])", 0),
    ("EVAL", "return redis.call('FLUSH'..'ALL')", 0),
    ("EVAL", "return redis.pcall 'FLUSHALL'", 0),
    ("EVAL", "return redis.call(ARGV[1])", 0, "FLUSHALL"),
    ("EVAL", "local c = redis.call return c('FLUSHALL')", 0),
    ("EVAL", "return redis['call']('FLUSHALL')", 0),
    ("EVAL", "return redis.call('\\70LUSHALL')", 0),
    ("EVAL", "return redis.call('GET', 'a') or redis.call(\"FLUSHALL\")", 0),
    ("EVAL", "return redis.call('COPY', KEYS[1], KEYS[1], 'DB', 0)", 1, "k"),
    ("EVAL_RO", "return redis.pcall('SELECT', 0)", 0),
    ("EVAL", "return server.call('FLUSHALL')", 0),
    (b"script", b"load", b"return redis.call([[FLUSHALL]])"),
    ("FUNCTION LOAD", "#!lua name=f\nredis.register_function('f', function() return 1 end)"),
    ("FUNCTION", "DELETE", "f"),
    ("FCALL", "f", 0),
    ("SCRIPT", "KILL"),
    ("SLOWLOG", "RESET"),
    ("SLOWLOG RESET",),
    ("LATENCY", "RESET"),
    ("ACL", "SETUSER", "u", "on"),
    ("ACL DELUSER", "u"),
    ("ACL", "LOAD"),
    ("ACL", "SAVE"),
    ("ACL", "LOG", "RESET"),
    ("SAVE",),
    ("bgsave",),
    ("BGREWRITEAOF",),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("CLIENT PAUSE", 1),
    ("CLIENT", "NO-EVICT", "on"),
    ("MODULE", "LIST"),
    ("CLUSTER", "RESET"),
    ("DEL", MARKER),
    ("UNLINK", "k", MARKER.encode()),
    ("SET", MARKER, "mine"),
    ("RENAME", "k", MARKER),
    ("EVAL", "return redis.call('DEL', KEYS[1])", 1, MARKER),
]


@pytest.mark.parametrize("command", REFUSED, ids=lambda c: " ".join(map(str, c))[:40])
def test_what_reaches_out_of_the_space_is_refused(url: str, command: tuple[str, ...]) -> None:
    _fill(url, 0)
    before = _contents(url)
    lab = _lab(url, foreign=True)
    lab.redis.set("k", "mine")
    number = lab.redis.client_info()["db"]
    with pytest.raises(LabError, match="was not sent"):
        lab.redis.execute_command(*command)
    for transaction in (True, False):
        with lab.redis.pipeline(transaction) as steps:
            steps.set("k", "changed")
            steps.execute_command(*command)
            with pytest.raises(LabError, match="was not sent"):
                steps.execute()
    assert lab.redis.get("k") == "mine"
    assert lab.redis.client_info()["db"] == number
    lab.close()
    assert _contents(url) == before


def test_what_stays_in_the_space_is_sent(url: str) -> None:
    lab = _lab(url)
    number = lab.redis.client_info()["db"]
    lab.redis.execute_command("SELECT", number)
    lab.redis.set("db", "SELECT")
    assert lab.redis.copy("db", "copy")
    assert lab.redis.eval("return redis.call('GET', KEYS[1])", 1, "db") == "SELECT"
    assert lab.redis.eval("return select('#', 'a', 'b')", 0) == 2  # Lua's own
    nested = "return redis.call(\"SET\", KEYS[1], redis.pcall( 'get' , KEYS[2])) -- recalled"
    assert lab.redis.register_script(nested)(["copy", "db"]) == "OK"
    assert lab.redis.eval("return ARGV[1]", 0, "redis.call('FLUSHALL')") == "redis.call('FLUSHALL')"
    for command in ("SLOWLOG GET", "SLOWLOG LEN", "LATENCY LATEST", "CLIENT LIST", "ACL WHOAMI"):
        lab.redis.execute_command(*command.split())
    with lab.client().pipeline(transaction=False) as quiet:
        packed = [("CLIENT", "REPLY", "OFF"), ("SET", "db", "quiet"), ("CLIENT", "REPLY", "ON")]
        link = quiet.connection_pool.get_connection()
        link.send_packed_command(link.pack_commands(packed))
        assert link.read_response() == "OK"
        link.disconnect()
    assert lab.redis.getset("db", "SELECT") == "quiet"
    assert lab.redis.get(MARKER)
    lab.redis.rpush("flushall", "FLUSHALL")
    assert replay(lab, '"" k')[0][1].startswith("(error) ERR unknown command")
    assert lab.client(decode_responses=False).get("copy") == b"SELECT"
    with pytest.raises(LabError, match="was not sent"):
        lab.client().flushall()
    lab.close()


def test_the_magic_is_guarded_too(url: str) -> None:
    _fill(url, 0)
    before = _contents(url)
    lab = _lab(url, foreign=True)
    for line in ("FLUSHALL", "flushdb async", '"\\x53ELECT" 0', "COPY k k2 DB 0"):
        with pytest.raises(LabError, match="was not sent"):
            replay(lab, f"SET k 1\n{line}")
    lab.close()
    assert _contents(url) == before


def test_settings_are_undone_at_the_end(url: str) -> None:
    names = ("zset-max-listpack-entries", "slowlog-log-slower-than")
    with open_client(url) as client:
        before = client.config_get(*names)
    lab = _lab(url)
    lab.redis.config_set("zset-max-listpack-entries", 7)
    replay(lab, "config set slowlog-log-slower-than 3\nCONFIG SET port 1 nonsense 2")
    lab.close()
    with open_client(url) as client:
        assert client.config_get(*names) == before


def test_a_lesson_that_deletes_every_key_leaves_nothing(url: str) -> None:
    _fill(url, 0)
    before = _contents(url)
    with open_client(url) as client:
        settings = client.config_get("zset-max-listpack-entries")
    lab = _lab(url, foreign=True)
    lab.redis.config_set("zset-max-listpack-entries", 7)
    with pytest.raises(LabError, match=rf"DEL was not sent: {MARKER} marks .*`lab\.reset\(\)`"):
        lab.redis.delete(*lab.redis.keys("*"))
    lab.redis.eval("for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', k) end", 0)
    assert lab.redis.dbsize() == 0
    lab.redis.set("k", "mine")
    lab.close()
    assert _contents(url) == before
    with open_client(url) as client:
        assert client.config_get("zset-max-listpack-entries") == settings


def test_a_server_that_was_started_anew_keeps_its_keys() -> None:
    """Without the marker, what stands in the database there is somebody else's."""
    port = free_port()
    first = embedded.start("redis", "--port", str(port))
    lab = _lab(f"redis://127.0.0.1:{port}/3")
    lab.redis.set("k", "mine")
    first.stop()
    second = embedded.start("redis", "--port", str(port))
    with open_client(f"redis://127.0.0.1:{port}/3") as client:
        client.set("k", "theirs")
        lab.close()
        assert client.get("k") == "theirs"
    second.stop()


def test_a_closed_lab_writes_nothing(url: str) -> None:
    lab = _lab(url)
    lab.close()
    with pytest.raises(LabError, match="This lab is closed"):
        lab.redis.set("late", 1)
    with pytest.raises(LabError, match="This lab is closed"):
        replay(lab, "SET late 1")
    lab.close()
    assert _contents(url) == {}


def test_a_server_that_ends_in_mid_lesson_is_no_traceback() -> None:
    with shared_server() as url:
        lab = _lab(url)
        lab.redis.set("k", 1)
        with open_client(url) as client:
            client.shutdown(nosave=True)
        with pytest.raises(redis.ConnectionError):
            lab.redis.get("k")
        with pytest.raises(LabError, match="The redis server ended"):
            replay(lab, "GET k")
        lab.close()


@pytest.mark.parametrize(
    ("credentials", "words"),
    [
        ("", "refuses the password"),
        (":wrong@", "refuses the password"),
        ("nobody:wrong@", "refuses the password"),
    ],
)
def test_passwords_are_asked_for_in_one_sentence(credentials: str, words: str) -> None:
    with shared_server() as url:
        with open_client(url) as client:
            client.config_set("requirepass", "right")
        with pytest.raises(LabError, match=words) as caught:
            _lab(url.replace("//", f"//{credentials}"))
        assert "wrong" not in str(caught.value)
        lab = _lab(url.replace("//", "//:right@"))
        assert "right" not in lab._main.source.shown
        lab.close()


def test_a_user_without_rights_is_one_sentence(url: str) -> None:
    for number, missing in enumerate(("-info", "-client", "-set", "-exists", "-get", "-select")):
        user = f"u{number}"
        with open_client(url) as client:
            client.set("other", 1)
            client.execute_command(
                "ACL", "SETUSER", user, "on", ">pw", "~*", "&*", "+@all", missing
            )
        with pytest.raises(LabError, match=r"The server at redis://u.:\*\*\*@"):
            _lab(url.replace("//", f"//{user}:pw@"), foreign=True)
        with open_client(url) as client:
            client.acl_deluser(user)
            assert client.dbsize() == 1


def test_a_server_without_memory_is_one_sentence(url: str) -> None:
    with open_client(url) as client:
        client.config_set("maxmemory", 1)
    with pytest.raises(LabError, match=r"does not let the lab work: .*maxmemory"):
        _lab(url)


def test_a_replica_is_one_sentence() -> None:
    away = f"127.0.0.1 {free_port()}"
    words = r"does not let the lab work: .*read.?only"
    with shared_server("--replicaof", away) as url, pytest.raises(LabError, match=words):
        _lab(url)


def test_a_server_of_one_database_will_do() -> None:
    with shared_server("--databases", "1") as url:
        lab = _lab(url)
        assert lab.redis.client_info()["db"] == 0
        with pytest.raises(LabError):
            _lab(url)
        lab.close()


def test_a_server_that_loads_its_data_is_one_sentence() -> None:
    with shared_server("--enable-debug-command", "yes", "--save", "3600 1") as url:
        with open_client(url) as client:
            client.set("k", 1)
            client.config_set("key-load-delay", 300_000)
            client.config_set("loading-process-events-interval-bytes", 1024)
            for part in range(300):
                client.zadd(f"b{part}", {f"m{n}": n for n in range(50)})
        with open_client(url) as background:
            loading = threading.Thread(target=lambda: _quiet(background, "DEBUG", "RELOAD"))
            loading.start()
            with open_client(url) as look:
                assert until(lambda: look.info("persistence")["loading"])
            with pytest.raises(LabError, match="still loading its data"):
                _lab(url)
            with open_client(url) as client:
                client.config_set("key-load-delay", 0)
            loading.join()


def _quiet(client: redis.Redis, *command: str) -> None:
    with contextlib.suppress(redis.RedisError):
        client.execute_command(*command)


@pytest.mark.parametrize("what", ["nobody", "silent", "ssh", "closes"])
def test_what_is_no_server_is_one_sentence(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labkit.servers.space._PATIENCE", 0.5)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        if what != "nobody":
            listener.listen()

        def answer() -> None:
            link, _ = listener.accept()
            if what == "ssh":
                link.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            if what == "closes":
                link.close()
            else:
                held.append(link)

        held: list[socket.socket] = []
        if what != "nobody":
            threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(LabError, match=r"No server answers at|does not let the lab work"):
            _lab(url)
        for link in held:
            link.close()


def test_a_name_that_nobody_has_is_one_sentence() -> None:
    with pytest.raises(LabError, match=r"No server answers at redis://no-such-host\.invalid"):
        _lab("redis://no-such-host.invalid:6390")


def test_own_server_may_be_flushed_and_configured() -> None:
    lab = Lab("redis")
    lab.redis.config_set("zset-max-listpack-entries", 7)
    lab.redis.set("k", 1)
    lab.redis.flushall()
    lab.redis.execute_command("SELECT", 3)
    lab.close()


def test_a_unix_socket_is_shared_as_well() -> None:
    server = embedded.start("redis")
    space = shared_space(f"unix://{server.socket}?db=2", refuse_foreign=True)
    assert space.client.client_info()["db"] == 2
    space.close()
    server.stop()


OLD = os.environ.get("LABKIT_OLD_SERVER") or shutil.which("redis-server")


@pytest.mark.skipif(OLD is None, reason="no old redis-server here (LABKIT_OLD_SERVER names one)")
def test_an_old_server_serves_and_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("labkit.servers.binaries.ensure", lambda _: OLD)
    with shared_server() as url:
        lab = connect(url)
        major = int(lab._main.version.split(".")[0])
        assert major < 8, "LABKIT_OLD_SERVER is not old"
        assert lab.redis.zadd("z", {"a": 1, "b": 2}) == 2
        assert lab.redis.zrange("z", 0, -1, withscores=True) == [["a", 1.0], ["b", 2.0]]
        assert not lab.supports("aggregate-count")
        words = capsys.readouterr().out
        assert words == f"{lab._main.label} has no AGGREGATE COUNT (Redis 8.8): left out here.\n"
        assert replay(lab, "ZSCORE z b\nZADD z NX GT 1 a")[0] == ("ZSCORE z b", '"2"')
        assert json.dumps(lab.redis.info("keyspace"))
        lab.close()
