"""Every deck for a situation starts, learns a few steps and ends well."""
from harness import DATA, SOURCE, Scratch, check, records, run

NAMES = ("development", "production", "large_model", "memory_constrained", "reproducible")

with Scratch() as scratch:
    for name in NAMES:
        directory = scratch / name
        run(["train", SOURCE / f"inputs/{name}.ini", "--data.train", DATA / "train.h5",
             "--data.validation", DATA / "test.h5", "--data.test", "", "--run.directory", directory,
             "--train.steps", 3, "--train.validate-every", 3, "--schedule.warmup-steps", 1,
             "--monitor.plots", "false", "--monitor.log-every", 1], ranks=2).expect(
                 0, "finished at step 3")
        check(len(records(directory, "validation")) == 1, f"{name} was validated")
        check(all(step["loss"] < 10 for step in records(directory, "step")), f"{name} computes")
