"""What the flight recorder, and a dashboard that looks on, cost training. Either is alternately on and off for windows of half
a second (recorder) or two seconds (dashboard) within one run, so a run is compared with itself:

    cmake --build build --target recorder_off
    LOCKSTEP_BUILD=build LOCKSTEP_MPIEXEC=mpirun python bench/alternating.py recorder 120
    LOCKSTEP_BUILD=build LOCKSTEP_MPIEXEC=mpirun python bench/alternating.py watched 240

The number is how many seconds to train. Printed are the median over pairs of neighbouring windows of how much longer a
step took, its 95 % interval, and the same for windows in which nothing was changed (the noise): the first and the second
half of each window that is off.
"""
import calendar
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "tests" / folder) for folder in ("run", "support")]
import harness  # noqa: E402
import serve_test  # noqa: E402

EDGE_S = 0.03  # around a change, that does not count


def interval(differences):
    """The median and its 95 % interval, by the bootstrap."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(differences, k=len(differences))) for _ in range(2000))
    return f"{statistics.median(differences):+.3f} % ({medians[50]:+.3f} to {medians[1949]:+.3f}, {len(differences)} pairs)"


def train(directory, seconds, preload=None):
    """Small steps on two ranks, which show a cost most; with as few other things as possible."""
    command = [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", harness.LOCKSTEP, "train", harness.DECK, "--data.train",
               harness.DATA / "train.h5", "--data.validation", "", "--run.directory", directory, "--run.replicas", "2",
               "--train.epochs", "0", "--train.steps", "100000000", "--checkpoint.every-steps", "0", "--monitor.weight-hash",
               "false", "--optimizer.accumulate", "1", "--monitor.plots", "false", "--monitor.progress", "none",
               "--run.walltime-seconds", str(seconds)]
    env = {**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=env)
    if done.returncode not in (0, 75):
        sys.exit(done.stdout + done.stderr)


def steps_of(directory):
    """When each step ended, and how long it took."""
    told = []
    for record in harness.records(directory, "step"):
        whole, part = record["time"].rstrip("Z").split(".")
        told.append((calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + part), record["step_ms"]))
    return told[len(told) // 20:]


def compare(steps, window, is_on):
    """Windows by their numbers: means of the steps within, whole and by halves."""
    windows = {}
    for at, step_ms in steps:
        number, within = divmod(at, window)
        if EDGE_S < within < window - EDGE_S:
            windows.setdefault(int(number), ([], []))[within > window / 2].append(step_ms)
    mean = {number: statistics.mean(a + b) for number, (a, b) in windows.items() if len(a) > 5 and len(b) > 5}
    cost = [100 * (mean[n] / statistics.mean([mean[n - 1], mean[n + 1]]) - 1)
            for n in mean if is_on(n) and n - 1 in mean and n + 1 in mean]
    noise = [100 * (statistics.mean(windows[n][1]) / statistics.mean(windows[n][0]) - 1) for n in mean if not is_on(n)]
    print(f"{statistics.mean(mean.values()):.3f} ms per step; on: {interval(cost)}; nothing changed: {interval(noise)}")


def recorder(scratch, seconds):
    train(scratch / "run", seconds, harness.BUILD.resolve() / "bench/librecorder_off.so")
    compare(steps_of(scratch / "run"), 0.5, lambda number: number % 2 == 0)


def look_on(server, ends):
    """A browser's stream, read to its end; the server stands still in every second window of two seconds."""
    stream = socket.create_connection(("127.0.0.1", server.port))
    stream.sendall(f"GET /events?runs=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
    bytes_read = 0
    while not ends.is_set():
        number, within = divmod(time.time(), 2)
        server.process.send_signal(signal.SIGCONT if number % 2 == 0 else signal.SIGSTOP)
        stream.settimeout(2 - within)
        try:
            while part := stream.recv(1 << 20):
                bytes_read += len(part)
        except TimeoutError:
            pass
    times = (pathlib.Path("/proc") / str(server.process.pid) / "stat").read_text().rpartition(")")[2].split()
    used = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
    print(f"the stream told {bytes_read / 1e6:.1f} MB; the server used {used:.2f} s of a core")
    server.process.send_signal(signal.SIGCONT)


def watched(scratch, seconds):
    ends = threading.Event()
    training = threading.Thread(target=train, args=(scratch / "run", seconds))
    training.start()
    while training.is_alive() and not (scratch / "run/metrics.jsonl").exists():
        time.sleep(0.1)
    with serve_test.Server(scratch) as server:
        looking = threading.Thread(target=look_on, args=(server, ends))
        looking.start()
        training.join()
        ends.set()
        looking.join()
    compare(steps_of(scratch / "run"), 2.0, lambda number: number % 2 == 0)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("recorder", "watched"):
        sys.exit(__doc__)
    with harness.Scratch() as scratch:
        {"recorder": recorder, "watched": watched}[sys.argv[1]](scratch, int(sys.argv[2]))
