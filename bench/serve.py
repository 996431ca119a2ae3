"""How fast lockstep serve opens a run of a million steps in Chromium:

    LOCKSTEP_BUILD=build python bench/serve.py

Needs Chromium. Since the command was started: when the page has a chart, when it has all curves of the whole file, and
when every record is in them; with the file in the system's cache, and read from its disk. Then, how long a move of the
pointer takes to draw, and to show the curves over the other axis. bench/alternating.py says what training loses while it is watched.
"""
import json
import os
import pathlib
import random
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "tests" / folder) for folder in ("run", "support")]
import browser as browsers  # noqa: E402
import harness  # noqa: E402
import serve_test  # noqa: E402

STEPS = 1_000_000
RUNS = "document.querySelector('#runs').textContent"
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
    """Seconds until a chart is there, until all curves are, of the whole run, and until they are made of every record."""
    page.open("about:blank")
    begun = time.monotonic()
    with serve_test.Server(run) as server:
        page.open(server.address.split(": ", 1)[1])
        page.until(f"{SHOWN}.some((each) => each.includes(' to '))")
        first = time.monotonic() - begun
        page.until(f"{SHOWN}.length > 5 && {SHOWN}.every((each) => /to (1 M|999.* k)$/.test(each))")
        whole = time.monotonic() - begun
        page.until(f"{RUNS}.includes('1 M of 1 M') && !{RUNS}.includes(' · read ')")
        every = time.monotonic() - begun
        fluid = page.evaluate("""new Promise((done) => {
            const box = document.querySelector('#view canvas'), begun = performance.now();
            for (let i = 0; i < 100; ++i) box.dispatchEvent(new PointerEvent('pointermove', { clientX: 300 + i, clientY: 200 }));
            requestAnimationFrame(() => done((performance.now() - begun) / 100)); })""")
        begun = time.monotonic()
        page.press("x")
        page.until(f"{SHOWN}.length > 5 && {SHOWN}.every((each) => /to (10|9.99) h$/.test(each))")
        return first, whole, every, fluid, time.monotonic() - begun


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
                first, whole, every, move, axis = opened(run, page)
                print(f"{size / 1e6:.0f} MB {kind}: a chart after {first:.2f} s, all curves after {whole:.2f} s, "
                      f"every record in them after {every:.2f} s; a move of the pointer {move:.2f} ms, the other axis {axis:.2f} s")


if __name__ == "__main__":
    open_figures()
