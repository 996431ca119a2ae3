"""What the tests of smaller models share."""
from harness import LONG, check, check_same, run, train

SHORT = ("--train.steps", 8, "--train.validate-every", 8, "--optimizer.accumulate", 1, "--checkpoint.every-steps", 4)


def alike(scratch, name, options, ranks=(1, 2), dies=6):
    """The same run on several numbers of ranks, of which the short form takes the first, and one that is killed on 2
    and resumed on 1."""
    for count in ranks if LONG else ranks[:1]:
        train(scratch / f"{name}-{count}", *SHORT, *options, ranks=count).expect(0)
        check_same(scratch / f"{name}-{ranks[0]}", scratch / f"{name}-{count}", f"{name}: {count} ranks agree")
    killed = scratch / f"{name}-killed"
    count = min(2, max(ranks))
    result = train(killed, *SHORT, *options, ranks=count, env={"LOCKSTEP_INJECT": f"kill:rank={count - 1}:step={dies}"})
    check(result.code != 0, "a rank was killed")
    train(killed, *SHORT, *options, ranks=1).expect(0, "resumed from")
    check_same(scratch / f"{name}-{ranks[0]}", killed, f"{name}: the same through a kill")
    return scratch / f"{name}-{ranks[0]}"


def measured(deck, file, *options, ranks=2):
    text = run(["evaluate", deck, file, *options], ranks=ranks).expect(0).text
    return [line for line in text.splitlines() if line.startswith("validation: ")][0]
