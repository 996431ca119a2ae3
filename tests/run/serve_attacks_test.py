"""lockstep serve among clients and files that mean harm: it continues to answer, in little memory, and tells nothing that
lies outside of the runs' directories."""
import json
import os
import random
import resource
import shutil
import signal
import socket
import time

import harness
import serve_test

CLIENTS = 300 if harness.LONG else 150
REQUESTS = 500 if harness.LONG else 60


def connected(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def words(server, path):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()


def response(file):
    """The status and the body of the next response."""
    status, length = int(file.readline().split()[1]), 0
    while (line := file.readline().strip()):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, file.read(length)


def answers(server):
    status, body, _ = server.get("/api/runs")
    harness.check(status == 200, "the server still answers")
    return json.loads(body)


def until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        harness.check(time.monotonic() < end, what)
        time.sleep(0.05)


def pipelined(server):
    """All requests of one packet are answered in their order."""
    with connected(server) as connection:
        connection.sendall(words(server, "/api/deck?run=0") * 300 + words(server, "/nothing"))
        file = connection.makefile("rb")
        told = [response(file) for _ in range(301)]
        harness.check(all(each == (200, b"[run]\nseed = 1\n") for each in told[:300]), "300 requests, 300 answers")
        harness.check(told[300][0] == 404 and file.read() == b"", "the last one is refused, and ends the connection")


def who_does_not_read(server):
    """Clients that ask for megabytes and read nothing cost little memory, and get their answers when they read."""
    before = serve_test.memory(server)
    request = words(server, "/api/series?run=1&columns=" + ",".join(["loss", "step_ms", "forward_ms"] * 20) + "&buckets=4000")
    silent = [connected(server) for _ in range(20)]
    for each in silent:
        each.sendall(request * 60)
    for _ in range(5):
        answers(server)
    grown = (serve_test.memory(server) - before) / 2**20
    harness.check(grown < 400, f"20 clients that do not read cost {grown:.0f} MiB")
    file = silent[0].makefile("rb")
    lengths = {len(response(file)[1]) for _ in range(60)}
    harness.check(len(lengths) == 1 and lengths.pop() > 1e5, "who reads late gets all answers")
    for each in silent:
        each.close()


def strangers(server):
    """Whoever holds connections without the token makes room for those who have it."""
    held = [connected(server) for _ in range(CLIENTS)]
    for each in held[::2]:
        each.sendall(b"GET / HTTP/1.1\r\nX: ")
    answers(server)
    for each in held:
        each.close()


def no_descriptors(server):
    """Where no descriptor is left for a connection, it waits, the server does not run in circles, and later it is let in."""
    def used():
        words = open(f"/proc/{server.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (24, limits[1]))
    streams = [connected(server) for _ in range(40)]  # by the kernel
    for each in streams:
        each.sendall(words(server, "/events?runs=0"))
    until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) >= 24, "all descriptors are used")

    def rests():
        before = used()
        time.sleep(1)
        return used() - before < 0.3
    until(rests, "it has answered those who came in, and rests")
    for each in streams[:30]:
        each.close()
    streams[-1].settimeout(60)
    harness.check(streams[-1].recv(100).startswith(b"HTTP/1.1 200"), "who has waited is let in")
    for each in streams:
        each.close()
    answers(server)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)


def odd_requests(server):
    for head, status in ((b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: 1\r\n" * 4000 + b"\r\n", 431),
                         (b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: 1\r\n" % i for i in range(500)) + b"\r\n", 403),
                         (b"GET /%c0%ae%c0%ae/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 401),
                         (b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", 401),
                         (b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
                         (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 400),
                         (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400), (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
                         (b"GET / HTTP/1.1\nHost: localhost\n\n\r\n\r\n", 400)):
        with connected(server) as connection:
            connection.sendall(head)
            told = connection.makefile("rb").readline()
            harness.check(told.startswith(b"HTTP/1.1 %d " % status), f"{head[:60]}: {told}")


def drawn_requests(server):
    """Requests of odd parts: each is answered as HTTP or the connection ends, in seconds and little memory."""
    draw, before, told = random.Random(harness.SEED), serve_test.memory(server), {}
    paths = ["/", "/api/runs", "/api/series?run=0&columns=loss&buckets=10", "/api/run?run=1", "/api/log?run=0&from=0", "/events?runs=0,1",
             "/api/picture?run=0&picture=0", "/api/deck?run=0", "/api/searches", "/api/search?search=0"]
    odd = ["-1", "99999999999999999999", "1e9", "%00", "%", "%zz", "../..", "\r", "&&", "=", "?", "#", "a" * 5000, "0,0,0", ",", "\xff"]
    for number in range(REQUESTS):
        path = draw.choice(paths)
        for _ in range(draw.choice([0, 1, 1, 2, 4])):
            at = draw.randrange(1, len(path) + 1)
            path = path[:at] + draw.choice(odd) + path[at + draw.randrange(3):]
        fields = [draw.choice(["Cookie: a=b", "Range: bytes=0-", "Connection: close", "Expect: 100-continue", "X: " + "y" * 9000, ": ",
                               "Upgrade: h2c", "Content-Length: " + draw.choice(odd)]) for _ in range(draw.choice([0, 0, 1, 2]))]
        if draw.random() < 0.8:
            fields.append(f"Authorization: Bearer {server.token}")
        head = [draw.choice(["GET"] * 7 + ["HEAD", "POST", "get", ""]) + f" {path} HTTP/1." + draw.choice("1111110x"),
                "Host: " + draw.choice(["localhost"] * 6 + ["evil.example", "", "localhost:1", "[::1]"]), *fields]
        data = bytearray("\r\n".join(head).encode("latin-1") + b"\r\n\r\n")
        for _ in range(draw.choice([0, 0, 0, 0, 1, 5])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        with connected(server) as connection:
            connection.sendall(data[:draw.randrange(len(data))] if draw.random() < 0.1 else data)
            connection.shutdown(socket.SHUT_WR)
            try:
                line = connection.recv(12)
            except ConnectionResetError:
                line = b""
            harness.check(line in (b"", b"HTTP/1.1 " + line[9:]), f"request {number} of seed {harness.SEED}: {data[:200]} gives {line}")
            told[line[9:]] = told.get(line[9:], 0) + 1
        if number % 20 == 0:
            answers(server)
    grown = (serve_test.memory(server) - before) / 2**20
    harness.check(grown < 256, f"{REQUESTS} requests cost {grown:.0f} MiB")
    print(f"{REQUESTS} requests: {told}")


def row_count(server, name):
    return next(each["rows"] for each in answers(server) if each["name"] == name)


def odd_records(server, run):
    """Lines that are no records, and those that would break who tells them on."""
    deep = '{"event":"note","a":' + "[" * 200000 + "]" * 200000 + "}"
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(deep.encode() + b"\n" + b'{"event":"step","step":51,"loss":NaN}\n' + b'{"event":"note","a":"\xff\xfe"}\n')
        file.write(b'{"event":"step","step":52,"loss":1e999}\n' + b"\0" * 1000 + b"\n" + b"x" * (5 << 20) + b"\n")
        file.write(b'{"event":"step","step":1e300,"loss":1}\n{"event":"step","step":53,"loss":null,"\xff":1}\n')
    (run / "history.jsonl").write_text(deep + '\n{"attempt":1}\n')
    stream = connected(server)
    stream.sendall(words(server, "/events?runs=0"))
    until(lambda: row_count(server, "first") >= 51, "what follows odd lines is read")
    details = json.loads(server.get("/api/run?run=0")[1])
    harness.check(details["history"] == [{"attempt": 1}] and details["overview"]["bad_lines"] >= 4, "odd lines are counted")
    harness.check(server.get("/api/series?run=0&columns=loss,%ff")[0] == 200, "a column may have any name")
    stream.close()


def replaced_and_removed(server, run):
    """The file is cut, written again in its place, removed, and comes back, while somebody looks on."""
    stream = connected(server)
    stream.sendall(words(server, "/events?runs=1"))
    file = run / "metrics.jsonl"
    text = file.read_bytes()
    os.truncate(file, 1000)
    until(lambda: row_count(server, "second") < 20, "a file that became shorter is read again")
    other = text.replace(b'"total_steps": 100', b'"total_steps": 777')
    with open(file, "r+b") as again:  # the same inode, and more bytes than before
        again.write(other + b"".join(serve_test.step_record(step).encode() for step in range(3001, 3101)))
    until(lambda: row_count(server, "second") == 3100 and answers(server)[1]["total_steps"] == 777,
          "a file that was written again is read again")
    shutil.rmtree(run)
    time.sleep(0.5)
    for path in ("/api/run?run=1", "/api/log?run=1", "/api/deck?run=1", "/api/series?run=1&columns=loss"):
        harness.check(server.get(path)[0] == 200, f"{path} of a run that was removed")
    serve_test.make_run(run, steps=7)
    until(lambda: row_count(server, "second") == 7, "a run that comes back is read")
    stream.close()


def links(server, run, secret):
    """Links that lead out of a run are not followed."""
    (run / "log.txt").unlink()
    (run / "log.txt").symlink_to(secret)
    (run / "deck.ini").unlink()
    (run / "deck.ini").symlink_to(secret)
    for folder in ("plots", "samples"):
        shutil.rmtree(run / folder, ignore_errors=True)
        (run / folder).symlink_to(secret.parent)
    (run / "history.jsonl").unlink(missing_ok=True)
    os.mkfifo(run / "history.jsonl")
    for path in ("/api/log?run=0", "/api/deck?run=0", "/api/run?run=0", "/api/picture?run=0&picture=0",
                 "/api/picture?run=0&picture=0&of=samples"):
        body = server.get(path)[1]
        harness.check(b"secret" not in body, f"{path} told what a link leads to: {body[:200]}")


def main():
    with harness.Scratch() as scratch:
        runs = scratch / "runs"
        serve_test.make_run(runs / "first")
        serve_test.make_run(runs / "second", steps=3000)
        secret = scratch / "outside" / "secret.png"
        secret.parent.mkdir()
        secret.write_bytes(b"\x89PNG secret")
        (runs / "third").mkdir()
        (runs / "third/metrics.jsonl").symlink_to(secret)
        with serve_test.Server(runs) as server:
            harness.check(len(answers(server)) == 2, "a run that is a link is none")
            pipelined(server)
            who_does_not_read(server)
            strangers(server)
            no_descriptors(server)
            odd_requests(server)
            drawn_requests(server)
            odd_records(server, runs / "first")
            replaced_and_removed(server, runs / "second")
            links(server, runs / "first", secret)
            answers(server)
            server.ends_by(signal.SIGTERM)


if __name__ == "__main__":
    main()
