"""Hosts on one machine: each has a network, a host name, a /dev/shm and an address of its own, and a
cable that can be pulled. Needs root; process numbers and all other directories are the machine's."""
import array
import contextlib
import errno
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

SIOCETHTOOL = 0x8946
# Checksums, scatter-gather, segmentation, and segments put together, left to the other side.
OFFLOADS = (0x17, 0x19, 0x1f, 0x24, 0x2c)


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


def send_whole_frames(interface):
    """A veth leaves checksums and segments to who receives; a relay between two needs them done."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for offload in OFFLOADS:
            value = array.array("I", [offload, 0])
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(control, SIOCETHTOOL, request)


@contextlib.contextmanager
def small_disk(place, megabytes):
    """A file system of its own, which must be there before the hosts are: they see the mounts of then."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(file):
    """Writes a file until no space is left."""
    with open(file, "wb", buffering=0) as full:
        try:
            while True:
                full.write(bytes(4096))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


class Hosts:
    """host1, host2, … on a bridge, while the context lasts."""

    def __init__(self, count, sessions=False, ipv6=False):
        """sessions: what starts a daemon stays, as ssh does; else it becomes the daemon. ipv6: there are no
        other addresses."""
        self.sessions, self.ipv6 = sessions, ipv6
        self.names = [f"host{k}" for k in range(1, count + 1)]
        self.number = os.getpid() % 10000
        self.bridge = f"lsb{self.number}"
        self.holders = {}
        self.relays = []

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-hosts-"))
        network = f"fd00:{self.number}::" if self.ipv6 else \
            f"10.{200 + self.number % 50}.{self.number // 50}."
        addresses = {name: f"{network}{10 + k}" for k, name in enumerate(self.names)}
        (self.path / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in addresses.items()))
        self.agent = self.path / "login"
        self.agent.write_text("#!/bin/sh\nname=$1; shift\n"
                              f"refused={self.path}/$name.refused\n"
                              "if [ -e $refused ]; then [ -s $refused ] || rm $refused; "
                              "echo \"the connection to $name was reset\" >&2; exit 255; fi\n"
                              f"for end in $name $(uname -n); do [ ! -e {self.path}/$end.cut ] || "
                              "exec sleep 1000; done\n"
                              f"{'' if self.sessions else 'exec '}nsenter -t $(cat {self.path}/$name) "
                              "-n -u -m -- /bin/sh -c \"$*\"\n" + ("exit $?\n" if self.sessions else ""))
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
        added = [f"{address}/64", "dev", "eth0", "nodad"] if self.ipv6 else [f"{address}/24", "dev", "eth0"]
        for words in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"], ["addr", "add", *added]):
            subprocess.run(inside + words, check=True)

    def cable(self, name):
        return f"ls{self.number}{name}"[:15]

    def cut(self, name, logins=True):
        """Pulls the cable: nobody hears an end of connections. Without `logins`, the agent's have another way."""
        if logins:
            (self.path / f"{name}.cut").touch()
        ip("link", "set", self.cable(name), "down")

    def refuse(self, name, once=True):
        """The agent's next login on the host fails, or each one."""
        (self.path / f"{name}.refused").write_text("" if once else "each")

    def accept(self, name):
        (self.path / f"{name}.refused").unlink(missing_ok=True)

    def block_udp(self, name):
        """A firewall: no UDP to or from the host."""
        for way in ("in", "out"):
            subprocess.run(["nsenter", "-t", str(self.holders[name].pid), "-n", "ip", "xfrm", "policy", "add",
                            "src", "0.0.0.0/0", "dst", "0.0.0.0/0", "proto", "udp", "dir", way, "action",
                            "block"], check=True)

    def crash(self, name):
        """Switches a host off: nobody hears an end of connections, and nothing of it is left."""
        self.cut(name)
        self.kill_jobs([name])

    def session(self, name):
        """The process, on any host, of the session that has started the daemon on this one."""
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue  # it has ended meanwhile
            if len(words) > 2 and words[1] == str(self.agent).encode() and words[2] == name.encode():
                return int(entry.name)
        raise RuntimeError(f"no session has started {name}")

    def join(self, name):
        ip("link", "set", self.cable(name), "up")
        (self.path / f"{name}.cut").unlink(missing_ok=True)
        # Until it is heard again, others may still take it for one that is not there.
        other = next(each for each in self.names if each != name)
        asks = ("import socket\n"
                f"try: socket.create_connection(({name!r}, 9), 1)\n"
                "except ConnectionRefusedError: print('there')\n")
        while "there" not in self.run(other, sys.executable, "-c", asks):
            time.sleep(0.1)

    def slow(self, name, seconds, bytes_per_second):
        """A longer and thinner cable: each frame takes so long, and so much passes, either way."""
        ends = [f"ls{self.number}{side}"[:15] for side in ("near", "far")]
        ip("link", "set", self.cable(name), "nomaster")
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        ip("link", "set", ends[0], "master", self.bridge, "up")
        ip("link", "set", ends[1], "up")
        here = str(pathlib.Path(__file__).parent)
        for holder in self.holders.values():
            subprocess.run(["nsenter", "-t", str(holder.pid), "-n", sys.executable, "-c",
                            f"import sys; sys.path.insert(0, {here!r}); import hosts; "
                            "hosts.send_whole_frames('eth0')"], check=True)
        send_whole_frames(self.bridge)
        relay = subprocess.Popen([sys.executable, f"{here}/slow_link.py", self.cable(name), ends[1],
                                  str(seconds), str(bytes_per_second)], stdout=subprocess.PIPE)
        self.relays.append((relay, ends[0]))
        if relay.stdout.readline() != b"joined\n":
            raise RuntimeError("the slow link does not come up")

    def run(self, name, *words):
        """Runs a command on a host; its output."""
        return subprocess.run(["nsenter", "-t", str(self.holders[name].pid), "-n", "-u", "-m",
                               "--", *map(str, words)], capture_output=True, text=True).stdout

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

    def kill_jobs(self, names=None):
        """Kills everything that mpirun has started on these hosts, or on all, and mpirun."""
        for name in names or self.names:
            for program in ("mpirun", "mpiexec", "orterun", "orted", "lockstep"):
                for process in self.processes(name, program):
                    try:
                        os.kill(process, signal.SIGKILL)
                    except ProcessLookupError:
                        pass

    def __exit__(self, *_):
        for relay, end in self.relays:
            relay.kill()
            relay.wait()
            ip("link", "del", end, check=False)
        self.kill_jobs()
        for name, holder in self.holders.items():
            holder.kill()
            holder.wait()
            ip("link", "del", self.cable(name), check=False)
        ip("link", "del", self.bridge, check=False)
        shutil.rmtree(self.path, ignore_errors=True)
