"""The dashboard's page in a headless Chromium: every view is opened, in both themes and on two screens; nothing may
complain on its console. LOCKSTEP_SCREENSHOTS names a directory to keep pictures of all of it in."""
import json
import os
import pathlib
import sys
import time

import harness

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
import browser as browsers  # noqa: E402
import serve_test  # noqa: E402

VIEWS = {"curves": "canvas", "time": "table", "ranks": ".tile", "history": "table", "log": "pre span", "deck": "tr",
         "pictures": ".panel", "searches": "table"}


def click_through(page, shots):
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme !== '{theme}' && document.getElementById('theme').click()")
        for size in (browsers.LARGE, browsers.SMALL):
            page.look(size)
            for view, element in VIEWS.items():
                page.evaluate(f"document.querySelector('[data-view={view}]').click()")
                page.until(f"document.querySelector('#view {element}')")
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                harness.check(wide <= 0, f"{view} is {wide} pixels wider than a screen of {size}")
                if shots:
                    time.sleep(0.4)  # until it is drawn
                    page.picture(pathlib.Path(shots) / f"{view}-{theme}-{size[0]}.png")


def main():
    if not browsers.chromium():
        print("skipped: no Chromium")
        sys.exit(77)
    shots = os.environ.get("LOCKSTEP_SCREENSHOTS")
    given = os.environ.get("LOCKSTEP_RUNS")  # real runs, for pictures
    with harness.Scratch() as scratch:
        runs = pathlib.Path(given or scratch / "runs")
        if not given:
            serve_test.make_run(runs / "first")
            serve_test.make_run(runs / "second", steps=3000)
            serve_test.make_search(runs / "search")
            serve_test.make_run(runs / "search/trials/0005")
        with serve_test.Server(runs, "--carbon-intensity", 350) as server, browsers.Browser() as page:
            page.look(browsers.LARGE)
            page.open(server.address.split(": ", 1)[1])
            page.until("document.querySelector('#view canvas') && document.getElementById('link').textContent === 'live'")
            harness.check("token" not in page.evaluate("location.href"), "the address no longer shows the token")
            page.press("a")
            page.until("document.querySelectorAll('#runs input:checked').length > 1")
            click_through(page, shots)
            for key in "12lsx0?":
                page.press(key)
            page.until("document.getElementById('keys').open")
            if not given:
                sees_a_new_record(page, runs / "first")
                shows_what_was_used(page, runs / "first")
                shows_samples(page)
                shows_a_search(page, runs / "search")
            harness.check(not page.problems, "the console complains:\n" + "\n".join(page.problems))


def sees_a_new_record(page, run):
    with open(run / "metrics.jsonl", "a") as file:
        file.write(serve_test.step_record(51, 0.0625))
    page.until("document.getElementById('runs').textContent.includes('0.0625')")


def shows_what_was_used(page, run):
    """Core-hours, energy, and its CO2 as `lockstep report` computes it."""
    of_ranks = [{"rank": rank, "memory_peak_bytes": (5 + rank) << 30, "device_utilization": 80.0 + rank,
                 "device_joules": 3.6e6 * (1 + rank)} for rank in range(2)]
    used = {"user_s": 3600.0, "system_s": 1800.0, "processor_joules": 1.8e6, "device_joules": 5.4e6, "ranks": of_ranks}
    with open(run / "metrics.jsonl", "a") as file:
        file.write(json.dumps({"event": "end", "time": "2026-01-01T01:00:00.000Z", "elapsed_s": 3600, "step": 51,
                               "reason": "finished", "resources": used}) + "\n")
    page.evaluate("document.querySelector('[data-view=history]').click()")
    page.until("document.querySelector('#view').innerText.includes('CO2 at 350 g/kWh')")
    text = page.evaluate("document.querySelector('#view').innerText")
    harness.check(all(words in text for words in ("1.500", "2.0000 kWh", "700.00 g")), f"what was used:\n{text}")
    page.evaluate("document.querySelector('[data-view=ranks]').click()")
    page.until("document.querySelector('#view .tile')")
    tiles = page.evaluate("[...document.querySelectorAll('#view .tile')].map((tile) => tile.innerText)")
    for rank in range(2):  # of the first run
        facts = (f"memory, at most: {5 + rank} GiB", f"device use, mean: {80 + rank} %",
                 f"energy of the device: {1 + rank}.0000 kWh")
        mine = [tile for tile in tiles if tile.startswith(f"rank {rank}\n") and all(fact in tile for fact in facts)]
        harness.check(len(mine) == 1, f"what rank {rank} used: {tiles}")


def shows_samples(page):
    """Plots and samples of each run, all of which can be drawn."""
    page.evaluate("document.querySelector('[data-view=pictures]').click()")
    page.until("document.querySelector('#view .samples img')?.naturalWidth === 8")
    runs, shown = (page.evaluate(f"document.querySelectorAll('{what}').length")
                   for what in ("#runs input:checked", "#view .samples img"))
    harness.check(shown == 2 * runs, f"{shown} samples of {runs} runs")


def shows_a_search(page, search):
    """The trials, with their Pareto front; a trial that ends; the curves of a trial."""
    page.evaluate("document.getElementById('keys').close()")
    page.press("8")
    page.until("document.querySelectorAll('#view tr').length === 13")
    check, text = harness.check, page.evaluate("document.querySelector('#view').innerText")
    check("random: 11 of 12 trials have a result, 1 failed" in text, f"what became of the trials:\n{text}")
    first = page.evaluate("[...document.querySelectorAll('#view tr.differs')].map((row) => row.cells[0].textContent)")
    # Trials 0 to 4 reach 0.5 to 0.9 with ever more parameters; the fourth failed.
    check(first == ["1", "2", "3", "5"], f"the front is {first}")
    check("f1.bag" not in text and "exit 1" in text, "no single classes; the failed one")
    with open(search / "search.jsonl", "a") as file:
        file.write(json.dumps({"event": "result", "trial": 11, "share": 1.0, "code": 0,
                               "metrics": {"accuracy": 0.99, "parameters": 1.0}}) + "\n")
    page.until("document.querySelectorAll('#view tr.differs').length === 1")
    page.evaluate("document.querySelector('#view button.link').click()")
    page.until("document.querySelector('[aria-current]').dataset.view === 'curves'")
    picked = page.evaluate("document.querySelector('#runs :checked').parentElement.title")
    check(picked.endswith("trials/0005"), f"the curves of {picked}")


if __name__ == "__main__":
    main()
