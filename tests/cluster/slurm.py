"""A Slurm of its own on this machine: its nodes are four hosts of hosts.py. Needs Slurm, munge, root."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import hosts

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "scontrol", "squeue", "scancel")

# cred_expire: else a requeued job waits for two minutes. config_overrides: a node has more CPUs than
# this machine. PMIxCliTmpDirBase lies where no other node sees it. KillWait to
# MessageTimeout, and GraceTime: a machine that stands still for a minute costs no job its last checkpoint. Jobs are
# told their limit without the minutes of OverTimeLimit.
CONF = """ClusterName=test
SlurmctldHost={name}({controller})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={path}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={path}/state
SlurmdSpoolDir={path}/spool/%n
SlurmctldPidFile={path}/slurmctld.pid
SlurmdPidFile={path}/slurmd.%n.pid
SlurmctldLogFile={path}/slurmctld.log
SlurmdLogFile={path}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=90
UnkillableStepTimeout=120
OverTimeLimit=2
MessageTimeout=100
MinJobAge=600
JobRequeue=1
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=1,sched_min_interval=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=work Nodes=host1,host2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=120
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2
PartitionName=weak Nodes=host3,host4 MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=120
"""


def missing():
    """What this machine lacks; empty when nothing."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return hosts.missing()


def run(*words, cwd=None):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=180, cwd=cwd)


class Slurm(hosts.Hosts):
    def __init__(self):
        super().__init__(4)

    def __enter__(self):
        super().__enter__()
        try:
            self.start_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_up(self):
        network = (self.path / "hosts").read_text().split()[2].rsplit(".", 1)[0]
        hosts.ip("addr", "add", f"{network}.1/24", "dev", self.bridge)
        self.configure(f"{network}.1", 17000 + 2 * self.number)
        os.environ["SLURM_CONF"] = str(self.path / "slurm.conf")
        self.daemon("munged", "--force", *(f"--{what}-file={self.path}/munge.{what}"
                                           for what in ("key", "pid", "log", "seed")),
                    f"--socket={self.path}/munge.socket")
        self.daemon("slurmctld", "-c")
        for name in self.names:
            self.boot(name)
        self.wait_until(lambda: self.idle() == len(self.names), 180, "all nodes are idle")

    def configure(self, controller, port):
        for folder in ("state", *(f"spool/{name}" for name in self.names)):
            (self.path / folder).mkdir(parents=True)
        self.path.chmod(0o755)
        (self.path / "munge.key").write_bytes(os.urandom(128))
        (self.path / "munge.key").chmod(0o600)
        text = CONF.format(path=self.path, name=socket.gethostname().split(".")[0], controller=controller, port=port, node_port=port + 1)
        for line in (self.path / "hosts").read_text().splitlines()[1:]:
            address, name = line.split()
            text += f"NodeName={name} NodeAddr={address} CPUs=8 RealMemory=4000 State=UNKNOWN\n"
        (self.path / "slurm.conf").write_text(text)
        (self.path / "cgroup.conf").write_text("CgroupPlugin=autodetect\n")
        (self.path / "mpi.conf").write_text("PMIxCliTmpDirBase=/dev/shm\n")

    def daemon(self, *words):
        # Not captured: what continues in the background would keep the other end open.
        done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RuntimeError(f"{words[0]} does not start")

    def boot(self, name):
        """Starts a node's daemon, as after a power cut: nothing is left of what it did before."""
        shutil.rmtree(self.path / "spool" / name)
        (self.path / "spool" / name).mkdir()
        self.daemon("nsenter", "-t", self.holders[name].pid, "-n", "-u", "-m", "--", "slurmd", "-c",
                    "-N", name)

    def crash(self, name):
        """Power off: the cable first, so that nobody hears of it."""
        self.cut(name)
        self.kill_all(name)

    def kill_all(self, name):
        holder = self.holders[name].pid
        own = os.readlink(f"/proc/{holder}/ns/net")
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if int(entry.name) != holder and os.readlink(entry / "ns/net") == own:
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass  # it has ended meanwhile

    def idle(self):
        return sum(line == "idle" for line in run("sinfo", "-h", "-N", "-p", "work,weak", "-o", "%T").stdout.split())

    def state(self, job):
        """PENDING, RUNNING, COMPLETED, CANCELLED, FAILED, …"""
        text = run("scontrol", "show", "job", job).stdout
        return next((word[9:] for word in text.split() if word.startswith("JobState=")), "unknown")

    def wait_until(self, condition, limit, what):
        deadline = time.monotonic() + limit
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"not within {limit} s: {what}\n" + run("squeue").stdout)
            time.sleep(0.2)

    def __exit__(self, *error):
        run("scancel", "-u", "root")
        for name in self.names:
            self.kill_all(name)
        for daemon in ("slurmctld.pid", "munge.pid"):
            path = self.path / daemon
            if path.exists() and path.read_text().strip():
                os.kill(int(path.read_text()), signal.SIGTERM)
        super().__exit__(*error)
