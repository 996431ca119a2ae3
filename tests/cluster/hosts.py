"""Hosts on one machine: each has a network, a host name, a /dev/shm and an address of its own, and a
cable that can be pulled. Needs root; process numbers and all other directories are the machine's."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time


def missing():
    """What this machine lacks; empty when nothing."""
    if os.geteuid() != 0:
        return "this needs root"
    for tool in ("ip", "nsenter", "unshare"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    tried = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], capture_output=True)
    return "" if tried.returncode == 0 else "namespaces are not allowed here"


def ip(*words, check=True):
    subprocess.run(["ip", *map(str, words)], check=check, capture_output=not check)


class Hosts:
    """host1, host2, … on a bridge, while the context lasts."""

    def __init__(self, count):
        self.names = [f"host{k}" for k in range(1, count + 1)]
        self.number = os.getpid() % 10000
        self.bridge = f"lsb{self.number}"
        self.holders = {}

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-hosts-"))
        network = f"10.{200 + self.number % 50}.{self.number // 50}"
        addresses = {name: f"{network}.{10 + k}" for k, name in enumerate(self.names)}
        (self.path / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in addresses.items()))
        self.agent = self.path / "login"
        self.agent.write_text("#!/bin/sh\nname=$1; shift\n"
                              f"exec nsenter -t $(cat {self.path}/$name) -n -u -m -- /bin/sh -c \"$*\"\n")
        self.agent.chmod(0o755)
        ip("link", "add", self.bridge, "type", "bridge")
        ip("link", "set", self.bridge, "up")
        for name in self.names:
            self.start(name, addresses[name])
        return self

    def start(self, name, address):
        ready = self.path / f"{name}.ready"
        holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "sh", "-c",
             f"hostname {name}; mount --bind {self.path}/hosts /etc/hosts; "
             f"mount -t tmpfs shm /dev/shm; touch {ready}; exec sleep infinity"])
        self.holders[name] = holder
        (self.path / name).write_text(str(holder.pid))
        while not ready.exists():
            time.sleep(0.02)
        cable = self.cable(name)
        ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", holder.pid)
        ip("link", "set", cable, "master", self.bridge, "up")
        inside = ["nsenter", "-t", str(holder.pid), "-n", "ip"]
        for words in (["addr", "add", f"{address}/24", "dev", "eth0"], ["link", "set", "lo", "up"],
                      ["link", "set", "eth0", "up"]):
            subprocess.run(inside + words, check=True)

    def cable(self, name):
        return f"ls{self.number}{name}"[:15]

    def cut(self, name):
        """Pulls the cable: nobody hears an end of connections."""
        ip("link", "set", self.cable(name), "down")

    def processes(self, name, program):
        """The process numbers of a program on a host."""
        own = os.readlink(f"/proc/{self.holders[name].pid}/ns/net")
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "ns/net") == own and \
                        (entry / "comm").read_text().strip() == program and \
                        "\nState:\tZ" not in (entry / "status").read_text():
                    found.append(int(entry.name))
            except OSError:
                pass  # it has ended meanwhile
        return found

    def mpirun(self, where, words, env=None):
        """Starts a program from the first host; where: "host1:2,host2:2"."""
        first = self.holders[self.names[0]].pid
        return subprocess.Popen(
            ["nsenter", "-t", str(first), "-n", "-u", "-m", f"--wd={os.getcwd()}", "--",
             os.environ["LOCKSTEP_MPIEXEC"], "--mca", "plm_rsh_agent", str(self.agent),
             "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
             "-x", "LOCKSTEP_INJECT", "--host", where, *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env={**os.environ, "LOCKSTEP_INJECT": "", **(env or {})})

    def __exit__(self, *_):
        for name, holder in self.holders.items():
            for program in ("lockstep", "orted", "mpirun"):
                for process in self.processes(name, program):
                    subprocess.run(["kill", "-9", str(process)])
            holder.kill()
            holder.wait()
            ip("link", "del", self.cable(name), check=False)
        ip("link", "del", self.bridge, check=False)
        shutil.rmtree(self.path, ignore_errors=True)
