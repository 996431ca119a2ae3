"""What the engine offers beside plain data-parallel training, on whole runs: the same bits in every
mode, and one clear end for what goes wrong in the middle of a step. LOCKSTEP_LONG=1 takes every arithmetic
through a restart."""
from harness import LONG, Scratch, check, check_same, records, same_state, some, train

with Scratch() as scratch:
    train(scratch / "plain", ranks=2).expect(0, "finished at step 30")

    # Concurrent replicas on the threads of one rank.
    train(scratch / "dp", "--run.mode", "dp", ranks=1).expect(0)
    check_same(scratch / "plain", scratch / "dp", "dp has the bits of ddp")
    for key, value, promise in some((
            ("--optimizer.update", "replicated", "every rank may do the update"),
            ("--precision.gradient-checkpointing", "true", "recomputed blocks have the same bits"))):
        train(scratch / value, key, value, ranks=2).expect(0)
        check_same(scratch / "plain", scratch / value, promise)

    # Other arithmetic, the same promise, through a restart on other ranks.
    arithmetics = {
        "bf16": ["--precision.compute", "bf16"],
        "fp16": ["--precision.compute", "fp16"],
        "halves": ["--communication.compression", "fp16"],
        "sync": ["--communication.sync-batch-norm", "true"]}
    restarted = some(arithmetics)
    for name in {*restarted, "fp16"}:
        train(scratch / name, *arithmetics[name], ranks=1).expect(0)
        check(not same_state(scratch / "plain", scratch / name), f"{name} is something else")
    for name in restarted:
        cut, options = scratch / f"{name}-cut", arithmetics[name]
        check(train(cut, *options, ranks=3,
                    env={"LOCKSTEP_INJECT": "kill:rank=1:step=13"}).code != 0, "it was killed")
        train(cut, *options, ranks=2).expect(0, "resumed from")
        check_same(scratch / name, cut, f"{name}: 1 rank, and 3 then 2, agree")
    # Low-rank gradients carry what they lost through a restart, on as many ranks as replicas.
    replicas = 4 if LONG else 2
    low = ["--communication.compression", "powersgd", "--communication.powersgd-rank", 2, "--run.replicas", replicas]
    train(scratch / "low", *low, ranks=replicas).expect(0, "PowerSGD")
    check(train(scratch / "low-cut", *low, ranks=replicas,
                env={"LOCKSTEP_INJECT": "kill:rank=1:step=13"}).code != 0, "it was killed")
    train(scratch / "low-cut", *low, ranks=replicas // 2).expect(64, "one replica on each rank")
    train(scratch / "low-cut", *low, ranks=replicas).expect(0, "resumed from")
    check_same(scratch / "low", scratch / "low-cut", "powersgd: a restart changes no bit")
    steps = records(scratch / "fp16", "step")
    check(steps[0]["loss_scale"] == 65536, f"the scale is recorded: {steps[0]}")
    step = steps[-1]
    check(step["loss_scale"] == 65536 / 2 ** sum(each["skipped"] for each in steps),
          f"each skipped step halved it: {step}")
    check(not step["skipped"], "it has settled")
    for key in ("imbalance_ms", "hidden_communication_ms", "exchanged_bytes"):
        check(key in step, f"{key} is recorded")
    if LONG:  # near the ordered sums: run.exchange
        train(scratch / "native", "--communication.reduction", "native", ranks=2).expect(0)

    for odd in some((0, 1)):
        train(scratch / f"nan{odd}", ranks=2,
              env={"LOCKSTEP_INJECT": f"nan:rank={odd}:step=4"}).expect(
            64, f"root cause: rank {odd}", "step 4", "the gradient of parameter ",
            "is not finite")
    train(scratch / "memory", ranks=2, env={"LOCKSTEP_INJECT": "oom:rank=1:step=4"}).expect(
        71, "root cause: rank 1", "step 4")
