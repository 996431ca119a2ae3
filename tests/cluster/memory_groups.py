"""Control groups that limit the memory of each simulated host, as the kernel counts it."""
import os
import pathlib


class MemoryGroups:
    """A group for each host, while the context lasts; `prefix` starts a program in that of its host, and is empty where
    this machine lets nobody make such groups."""

    def __init__(self, names, limit):
        self.names, self.limit, self.groups, self.prefix = names, int(limit), [], []

    def __enter__(self):
        root = pathlib.Path("/sys/fs/cgroup")
        own = root / "memory" if (root / "memory").is_dir() else root
        file = "memory.limit_in_bytes" if own != root else "memory.max"
        base = own / f"lockstep-{os.getpid()}"
        try:
            for name in self.names:
                group = base.with_name(f"{base.name}-{name}")
                group.mkdir()
                self.groups.append(group)
                (group / file).write_text(str(self.limit))
        except OSError:
            return self
        self.prefix = ["/bin/sh", "-c", f'echo $$ > {base}-$(hostname)/cgroup.procs && exec "$0" "$@"']
        return self

    def __exit__(self, *_):
        for group in self.groups:
            group.rmdir()  # whose processes have ended
