"""Ranks that are slower than others get less to do, on request; one that does not come at all is named in time."""
from harness import Scratch, check, check_same, checkpoints, records, train

with Scratch() as scratch:
    train(scratch / "plain", ranks=2).expect(0)
    train(scratch / "speed", "--run.placement", "speed", ranks=3,
          env={"LOCKSTEP_INJECT": "slow:rank=2"}).expect(0)
    check_same(scratch / "plain", scratch / "speed", "shares by speed have the same bits")
    shares = records(scratch / "speed", "start")[0]["replicas_of_rank"]
    check(shares == [2, 1, 1], f"the slow rank got the least: {shares}")

    for ranks in (2, 4):
        result = train(scratch / f"hang{ranks}", "--communication.timeout-seconds", 2, ranks=ranks,
                       env={"LOCKSTEP_INJECT": "hang:rank=1:step=7"})
        check(result.code == 76, f"exit code {result.code}: {result.text}")
        check("root cause: rank 1 (" in result.text and "no progress for 2 s" in result.text,
              result.text)
        check(checkpoints(scratch / f"hang{ranks}"), "a checkpoint is there to go back to")
