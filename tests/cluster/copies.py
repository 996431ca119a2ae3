"""The copies of a run's state in the memory of hosts, as files: what their headers tell, and a bit that is flipped."""
import dataclasses
import pathlib
import struct

MAGIC = b"lockstep state 1"
HEADER = struct.Struct("<16s3QqiiQQQQ")  # as src/checkpoint/memory_copy.cpp writes it
CONTENT = 4096  # begins here: a table, then a block


@dataclasses.dataclass(frozen=True)
class Copy:
    host: str
    path: pathlib.Path
    step: int
    rank: int
    ranks: int
    size: int

    def flip(self, draw):
        """Flips a bit of the header, or of what follows it; where."""
        at = draw.randrange(HEADER.size) if draw.random() < 0.3 else draw.randrange(CONTENT, self.size)
        with open(self.path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << draw.randrange(8)]))
        return f"byte {at} of rank {self.rank}'s on {self.host}"


def copies_on(hosts):
    """Those with a whole header."""
    found = []
    for host, holder in hosts.holders.items():
        for path in pathlib.Path(f"/proc/{holder.pid}/root/dev/shm").glob("lockstep-state-*"):
            head = path.read_bytes()[:HEADER.size]
            if head[:16] == MAGIC:
                _, _, _, _, step, rank, ranks, table, block, _, _ = HEADER.unpack(head)
                found.append(Copy(host, path, step, rank, ranks, CONTENT + table + block))
    return found


def whole_steps(copies):
    """{step: {rank: its copies}} of the steps of which every rank's part is there."""
    steps = {}
    for copy in copies:
        steps.setdefault(copy.step, {}).setdefault(copy.rank, []).append(copy)
    return {step: ranks for step, ranks in steps.items() if len(ranks) == next(iter(ranks.values()))[0].ranks}
