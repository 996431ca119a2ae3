"""lockstep serve: who is let in, what is refused, live events, its end."""
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import zlib

import harness

ASK = """import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(b"GET /api/runs HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
print(connection.makefile().read())"""
REQUESTS = 1000 if harness.LONG else 150


class Server:
    def __init__(self, *words):
        self.process = subprocess.Popen([harness.LOCKSTEP, "serve", *map(str, words)], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        found = re.search(r":(\d+)/\?token=(\w+)", self.address)
        self.port, self.token = (int(found[1]), found[2]) if found else (0, "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def get(self, path, method="GET", token=True, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(), response

    def ends_by(self, number):
        self.process.send_signal(number)
        harness.check(self.process.wait(timeout=120) == 0, f"signal {number} ends the server with 0")


def memory(server):
    with open(f"/proc/{server.process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def step_record(step, loss=1.0):
    return json.dumps({"event": "step", "time": f"2026-01-01T00:{step // 60 % 60:02}:{step % 60:02}.000Z", "elapsed_s": step,
                       "step": step, "loss": loss, "step_ms": 10.0, "forward_ms": 4.0, "backward_ms": 6.0}) + "\n"


def png(grey):
    """A picture of one grey."""
    chunk = lambda name, text: struct.pack(">I", len(text)) + name + text + struct.pack(">I", zlib.crc32(name + text))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress((b"\0" + bytes([grey] * 8)) * 8)) + chunk(b"IEND", b""))


def make_run(directory, steps=50):
    directory.mkdir(parents=True)
    start = {"event": "start", "time": "2026-01-01T00:00:00.000Z", "elapsed_s": 0, "ranks": 2, "hosts": ["a", "b"],
             "devices": ["cpu", "cpu"], "replicas": 2, "model": "mlp", "total_steps": 100}
    (directory / "metrics.jsonl").write_text(json.dumps(start) + "\n" + "".join(map(step_record, range(1, steps + 1))))
    (directory / "deck.ini").write_text("[run]\nseed = 1\n")
    for name, grey in ("plots/loss.png", 0), ("samples/0000.png", 80), ("samples/0001.png", 160):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(png(grey))
    (directory / "log.txt").write_text("2026 begun\nlockstep: root cause: rank 1 (b, cpu) in backward: why\n")


def make_worst(run, hostile="b"):
    """What `lockstep evaluate RUN --worst 2 --worst-output RUN/worst` writes."""
    lines = [{"event": "worst", "set": "test", "samples": 1000}]
    (run / "worst").mkdir()
    for place, sample, loss in (1, 7, None), (2, 3, 4.5):
        name = f"{place:04}_sample_{sample}.png"
        (run / "worst" / name).write_bytes(png(40 * place))
        lines.append({"event": "sample", "sample": sample, "loss": loss, "truth": "a", "prediction": f"{hostile} (0.97)",
                      "file": "test.h5", "number_in_file": sample, "source": f"{hostile}/{sample}.png", "picture": name})
    (run / "worst/worst.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def make_search(directory, trials=12):
    """A journal of a search for two goals, with a key that not every trial has, a failed trial and one that runs."""
    directory.mkdir(parents=True)
    records = [{"event": "search", "version": "1", "deck": "", "space": {
        "search.goals": "accuracy max, parameters min", "search.strategy": "random",
        "space.optimizer.learning-rate": "log-uniform(1e-4, 1e-1)", "space.model.hidden": "integer(8, 64)"}}]
    for trial in range(trials):
        values = {"optimizer.learning-rate": str(10 ** (trial / trials * 3 - 4)), "model.hidden": str(8 + trial * 3),
                  "optimizer.name": ["sgd", "adamw"][trial % 2]}
        if trial % 2 == 0:
            values["optimizer.momentum"] = str(trial / trials)
        records.append({"event": "ask", "trial": trial, "share": 1.0, "values": values})
        metrics = {"accuracy": 0.5 + trial % 5 / 10, "parameters": 1000.0 + 100 * trial, "f1.bag": 0.5}
        result = {"event": "result", "trial": trial, "share": 1.0, "code": 0, "metrics": metrics, "seconds": 2.5, "step": 10}
        if trial == 3:
            result = {"event": "result", "trial": trial, "share": 1.0, "code": 1, "message": "it diverged"}
        if trial < trials - 1:
            records.append(result)
    (directory / "search.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def let_in_and_refused(server):
    check = harness.check
    check(server.get("/api/runs", token=False)[0] == 401, "without the token nothing is told")
    check(server.get("/", token=False)[0] == 401, "nor the page")
    check(server.get("/?token=" + "0" * 48, token=False)[0] == 401, "a wrong token is refused")
    status, _, response = server.get("/?token=" + server.token, token=False)
    cookie = response.getheader("Set-Cookie")
    check(status == 303 and response.getheader("Location") == "/", "the address with the token leads to the page")
    check("HttpOnly" in cookie and "SameSite=Strict" in cookie, "the cookie is for this site's requests alone")
    status, page, response = server.get("/", token=False, Cookie=cookie.split(";")[0])
    check(status == 200 and b"Lockstep" in page, "the cookie lets in")
    check("default-src 'none'" in response.getheader("Content-Security-Policy"), "nothing is loaded from elsewhere")
    check(server.get("/api/runs")[0] == 200, "so does the header")
    check(server.get("/api/runs", Host="evil.example")[0] == 403, "DNS rebinding is refused")
    check(server.get("/api/runs", Host="127.0.0.1.evil.example:80")[0] == 403, "a name that begins like ours, too")
    check(server.get("/api/runs", Host="localhost:9999")[0] == 200, "a forwarded port may be another one")
    check(server.get("/api/runs", Origin="http://evil.example")[0] == 403, "another origin is refused")
    check(server.get("/api/runs", Sec_Fetch_Site="cross-site")[0] == 403, "a request from another site is refused")
    check(server.get("/api/runs", method="POST")[0] == 405, "only GET and HEAD")
    check(server.get("/api/runs", method="DELETE")[0] == 405, "only GET and HEAD")


def no_path_leads_out(server):
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/picture?run=0&picture=../../x", "/etc/passwd",
                 "/api/deck?run=../../x", "/api/deck?run=-1", "/api/deck?run=18446744073709551616", "//etc/passwd",
                 "/api/log?run=0%00"):
        status, body, _ = server.get(path)
        harness.check(status in (400, 404) and b"root:" not in body, f"{path} leads nowhere: {status}")


def what_is_told(server, run):
    details = json.loads(server.get("/api/run?run=0")[1])
    told = json.loads(server.get("/api/runs")[1])[0]
    harness.check(told["carbon_intensity"] == details["overview"]["carbon_intensity"] == 350.5, "the carbon intensity")
    harness.check("loss" in details["columns"] and details["events"][0]["event"] == "start", "the run's records")
    series = json.loads(server.get("/api/series?run=0&columns=loss,none&from=10&to=20")[1])
    harness.check(series["x"] == list(range(9, 22)) and series["curves"]["loss"]["mean"] == [1] * 13, "a range of steps")
    harness.check(details["pictures"] == ["loss.png"] and details["samples"] == ["0000.png", "0001.png"], "the pictures")
    for words, name in ("picture=0", "plots/loss.png"), ("picture=1&of=samples", "samples/0001.png"):
        harness.check(server.get(f"/api/picture?run=0&{words}")[1] == (run / name).read_bytes(), name)
    harness.check(server.get("/api/picture?run=0&picture=1")[0] == 404, "there is one plot")
    harness.check(details["worst"] == details["worst_pictures"] == [], "nothing was evaluated yet")
    make_worst(run)
    details = json.loads(server.get("/api/run?run=0")[1])
    harness.check([each["event"] for each in details["worst"]] == ["worst", "sample", "sample"] and
                  details["worst_pictures"] == ["0001_sample_7.png", "0002_sample_3.png"], f"the worst samples: {details['worst']}")
    harness.check(server.get("/api/picture?run=0&picture=1&of=worst")[1] == (run / "worst/0002_sample_3.png").read_bytes(), "and pictures")
    (run / "worst").rename(run / "elsewhere")
    (run / "worst").symlink_to("elsewhere")
    details = json.loads(server.get("/api/run?run=0")[1])
    harness.check(details["worst"] == details["worst_pictures"] == [], "no link is followed")
    harness.check("root cause" in json.loads(server.get("/api/log?run=0")[1])["text"], "the log")
    harness.check(server.get("/api/deck?run=0")[1] == (run / "deck.ini").read_bytes(), "the deck")


def live(server, run):
    """Events follow a record; a step that is told again, and a resume, take back what was told."""
    stream = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    stream.sendall(f"GET /events?runs=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
    text = b""

    def until(phrase):
        nonlocal text
        while phrase not in text:
            part = stream.recv(65536)
            harness.check(part, f"the stream ended before {phrase}")
            text += part

    until(b"event: hello")
    text = b""
    begun = time.monotonic()
    with open(run / "metrics.jsonl", "a") as file:
        file.write(step_record(51, 0.25))
    until(b'"loss":[0.25]')
    print(f"a record was told after {time.monotonic() - begun:.3f} s")
    with open(run / "metrics.jsonl", "a") as file:
        file.write(json.dumps({"event": "resume", "time": "2026-01-01T01:00:00.000Z", "step": 40}) + "\n")
    until(b"event: again")
    series = json.loads(server.get("/api/series?run=0&columns=loss")[1])
    harness.check(series["x"] == list(range(1, 41)), "what was done after the checkpoint is taken back")
    stream.close()


PATHS = ("/api/series?run=0&columns=loss&from=1&to=5", "/", "/api/runs", "/api/run?run=0", "/api/log?run=0", "/api/deck?run=0",
         "/api/series?run=99999999999999999999&columns=" + "a," * 999)
INSERTED = (b"%00", b"..", b"\r\n", b"Content-Length: 99999999999\r\n", b"&run=-1", b"=" * 999, b"A" * 70000, b"1e999", b"POST ",
            b"Range: bytes=0-18446744073709551615\r\n")


def fuzzed(server):
    """Requests that are none do no harm, and cost no memory."""
    draw = random.Random(harness.SEED)
    before = memory(server)
    for _ in range(REQUESTS):
        words = bytearray(f"GET {draw.choice(PATHS)} HTTP/1.1\r\nHost: localhost\r\n"
                          f"Authorization: Bearer {server.token}\r\n\r\n".encode())
        for _ in range(draw.randrange(1, 8)):
            at = draw.randrange(len(words))
            words[at:at + draw.randrange(3)] = bytes(draw.choices(b"\r\n\0%?&=:/ A9\xff", k=draw.randrange(4)))
        if draw.random() < 0.3:
            at = draw.randrange(len(words))
            words[at:at] = draw.choice(INSERTED)
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=120)
        try:
            connection.sendall(bytes(words)[:draw.choice([len(words), draw.randrange(len(words) + 1)])])
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except OSError:
            pass  # refused, which is as good
        connection.close()
    harness.check(server.get("/" + "a" * 20000)[0] == 431, "a long request is refused")
    harness.check(server.get("/api/runs")[0] == 200, "the server still answers")
    harness.check(memory(server) - before < 256 << 20, f"{REQUESTS} requests cost {(memory(server) - before) >> 20} MiB")


def by_socket(scratch, run):
    path = scratch / "socket"
    scratch.chmod(0o755)
    with Server(run, "--socket", path) as server:
        harness.check(path.stat().st_mode & 0o777 == 0o600, "the socket is this user's alone")
        # The system's, which other users may run, too.
        ask = ["/usr/bin/python3", "-c", ASK, path]
        told = subprocess.run(ask, capture_output=True, text=True)
        harness.check('"name"' in told.stdout, f"this user is let in: {told.stdout}{told.stderr}")
        if os.geteuid() == 0 and shutil.which("setpriv") and os.path.exists(ask[0]):
            other = ["setpriv", "--reuid", "65534", "--clear-groups", *ask]
            refused = subprocess.run(other, capture_output=True, text=True)
            harness.check(refused.stdout == "" and "PermissionError" in refused.stderr, "another user cannot connect")
            path.chmod(0o666)  # even then: the kernel says whose process it is
            refused = subprocess.run(other, capture_output=True, text=True)
            harness.check(refused.stdout.strip() == "" and refused.returncode in (0, 1), "another user is told nothing")
        harness.run(["serve", run, "--socket", path]).expect(73, "another process listens")
        server.ends_by(signal.SIGTERM)
        harness.check(not path.exists(), "the socket is removed")


def mistakes(scratch, run):
    harness.run(["serve", scratch / "none"]).expect(66, "cannot be shown")
    harness.run(["serve", run, "--port", "70000"]).expect(64)
    harness.run(["serve", run, "--carbon-intensity", "much"]).expect(64, "carbon-intensity")
    harness.run(["serve", run, "--port", "1234", "--socket", "x"]).expect(64, "both given")
    harness.run(["serve", run, "--socket", "/tmp/" + "x" * 200]).expect(64, "longer than")
    harness.run(["serve", run, "--socket", run / "deck.ini"]).expect(73, "a file of that name")


def first_answer(scratch):
    """The first request is told of every run, of a large one by a sample; soon of all of it."""
    for name in ("large", "run15b"):
        make_run(scratch / "many" / name, steps=280_000)
    for number in range(30):
        make_run(scratch / "many" / f"run{number:02}")
    with Server(scratch / "many") as server:
        told = json.loads(server.get("/api/runs")[1])
        harness.check(not any("carbon_intensity" in run for run in told), "a carbon intensity that nobody gave")
        harness.check(all(run["rows"] > 0 for run in told), f"every run has rows: {[run['rows'] for run in told]}")
        large = [run for run in told if run["name"] in ("large", "run15b")]
        harness.check(all(run["rows"] < 280_000 and run["read"] < 1 and run["step"] == 280_000 for run in large),
                      f"samples of the whole runs: {large}")
        until = time.monotonic() + 60
        while min(run["read"] for run in told) < 1 and time.monotonic() < until:
            time.sleep(0.1)
            told = json.loads(server.get("/api/runs")[1])
        harness.check(sorted(run["rows"] for run in told) == 30 * [50] + 2 * [280_000], f"all has been read: {told}")


def main():
    with harness.Scratch() as scratch:
        run = scratch / "runs" / "first"
        make_run(run)
        with Server(scratch / "runs", "--carbon-intensity", 350.5) as server:
            let_in_and_refused(server)
            no_path_leads_out(server)
            what_is_told(server, run)
            live(server, run)
            fuzzed(server)
            server.ends_by(signal.SIGINT)
        first_answer(scratch)
        by_socket(scratch, run)
        mistakes(scratch, run)


if __name__ == "__main__":
    main()
