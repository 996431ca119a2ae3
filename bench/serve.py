"""How fast lockstep serve opens a run of a million steps in Chromium, and what training loses while it is watched:

    LOCKSTEP_BUILD=build python bench/serve.py open
    LOCKSTEP_BUILD=build LOCKSTEP_MPIEXEC=mpirun python bench/serve.py watched 30

Needs Chromium. `open` says when the page has the newest step, and all curves of the whole file, since the command was
started: with the file in the system's cache, and read from its disk. `watched` trains pairs of runs of equal length, in
turn with a browser that looks on and without, and says by how much the watched one was slower: the median of the pairs
and its 95 % interval, beside that of as many pairs in which nobody looked on (the noise).
"""
import json
import os
import pathlib
import random
import statistics
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "tests" / folder) for folder in ("run", "support")]
import browser as browsers  # noqa: E402
import harness  # noqa: E402
import serve_test  # noqa: E402

STEPS = 1_000_000
SHOWN = "[...document.querySelectorAll('#view canvas')].map((each) => each.getAttribute('aria-label'))"


def million(directory):
    """Records as a run on two ranks writes them, 600 bytes each."""
    directory.mkdir(parents=True)
    draw = random.Random(1)
    start = {"event": "start", "time": "2026-01-01T00:00:00.000Z", "elapsed_s": 0, "ranks": 2, "hosts": ["a", "a"],
             "devices": ["cpu", "cpu"], "replicas": 2, "model": "cnn", "total_steps": STEPS}
    times = {name: [draw.uniform(1, 30) for _ in range(997)] for name in (
        "samples_per_s", "step_ms", "data_ms", "forward_ms", "backward_ms", "communication_ms", "imbalance_ms",
        "hidden_communication_ms", "update_ms", "grad_norm")}
    with open(directory / "metrics.jsonl", "w", buffering=1 << 20) as file:
        file.write(json.dumps(start) + "\n")
        for step in range(1, STEPS + 1):
            day, second = divmod(step * 0.036, 86400)
            record = {"event": "step", "step": step, "epoch": step / 469, "loss": 2.3 / (1 + step / 1e5) + draw.random() / 50,
                      "learning_rate": 0.003 * (1 - step / STEPS),
                      **{name: values[step % 997] for name, values in times.items()},
                      "exchanged_bytes": 16384, "messages": 0, "memory_bytes": 189935616 + step,
                      "weight_hash": "aee39af64f8dc560", "elapsed_s": step * 0.036,
                      "time": f"2026-01-{1 + int(day):02}T{int(second / 3600):02}:{int(second / 60) % 60:02}:{second % 60:06.3f}Z"}
            file.write(json.dumps(record, separators=(",", ":")) + "\n")
    (directory / "deck.ini").write_text("[run]\nseed = 1\n")
    (directory / "log.txt").write_text("begun\n")


def forget(file):
    """Makes the system forget what it knows of a file's contents."""
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def opened(run, page):
    """Seconds until a chart is there, and until all curves are, of the whole run."""
    page.open("about:blank")
    begun = time.monotonic()
    with serve_test.Server(run) as server:
        page.open(server.address.split(": ", 1)[1])
        page.until(f"{SHOWN}.some((each) => each.includes(' to '))")
        first = time.monotonic() - begun
        page.until(f"{SHOWN}.length > 5 && {SHOWN}.every((each) => /to (1 M|999.* k)$/.test(each))")
        whole = time.monotonic() - begun
        fluid = page.evaluate("""new Promise((done) => {
            const box = document.querySelector('#view canvas'), begun = performance.now();
            for (let i = 0; i < 100; ++i) box.dispatchEvent(new PointerEvent('pointermove', { clientX: 300 + i, clientY: 200 }));
            requestAnimationFrame(() => done((performance.now() - begun) / 100)); })""")
        begun = time.monotonic()
        page.press("x")
        page.until(f"{SHOWN}.length > 5 && {SHOWN}.every((each) => /to (10|9.99) h$/.test(each))")
        return first, whole, fluid, time.monotonic() - begun


def open_figures(rounds=5):
    with harness.Scratch() as scratch, browsers.Browser() as page:
        run = scratch / "million"
        million(run)
        size = (run / "metrics.jsonl").stat().st_size
        page.look(browsers.LARGE)
        for kind in ("cached", "from disk"):
            for _ in range(rounds):
                if kind != "cached":
                    forget(run / "metrics.jsonl")
                first, whole, move, axis = opened(run, page)
                print(f"{size / 1e6:.0f} MB {kind}: a chart after {first:.2f} s, all curves after {whole:.2f} s; "
                      f"a move of the pointer {move:.2f} ms, the other axis {axis:.2f} s")


def step_ms(scratch, name, watched):
    """The median step of a run, of which the first tenth does not count."""
    directory = scratch / name
    options = ["--train.steps", "400", "--train.validate-every", "0", "--checkpoint.every-steps", "0",
               "--monitor.weight-hash", "false", "--optimizer.accumulate", "1"]
    if watched:
        with serve_test.Server(scratch) as server, browsers.Browser() as page:
            page.open(server.address.split(": ", 1)[1])
            harness.train(directory, *options).expect(0)
            page.until("document.querySelector('#view canvas')")
    else:
        harness.train(directory, *options).expect(0)
    steps = [record["step_ms"] for record in harness.records(directory, "step")][40:]
    return statistics.mean(steps)


def interval(ratios):
    """The median and its 95 % interval, by the bootstrap."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return f"{statistics.median(ratios):+.2f} % ({medians[50]:+.2f} to {medians[1949]:+.2f})"


def watched_figures(pairs):
    with harness.Scratch() as scratch:
        slower, noise = [], []
        for i in range(pairs):
            alone = step_ms(scratch, f"a{i}", False)
            slower.append(100 * (step_ms(scratch, f"b{i}", True) / alone - 1))
            noise.append(100 * (step_ms(scratch, f"c{i}", False) / alone - 1))
            print(f"{alone:.3f} ms a step alone: watched {slower[-1]:+.2f} %, alone again {noise[-1]:+.2f} %", flush=True)
        print(f"watched: {interval(slower)}, alone: {interval(noise)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["open"]:
        open_figures()
    elif sys.argv[1:2] == ["watched"]:
        watched_figures(int(sys.argv[2]))
    else:
        sys.exit(__doc__)
