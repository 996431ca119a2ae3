"""A stand-in of PBS for tests, as commands on PATH: qsub, qstat, qsig, qrerun and qdel over a folder,
SPOOL.

What it keeps to, as OpenPBS does: a job begins in the home directory with a login shell's short PATH and
PBS's variables; #PBS lines give resources, which options win over; mpiprocs times each host in the
node file; qsig signals every process of the job; walltime ends in TERM, then KILL; afterany chains.

What it grants: a job has its walltime from whenever it asks qstat, as if an operator had extended it, and
TERM comes long after. How many seconds ranks take to start depends on who else uses the machine."""
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

SPOOL = pathlib.Path(os.environ["QSUB_SPOOL"])
GRACE = 300  # seconds that a job may take to start and to end, beside its walltime


def options_of(words):
    """Options by letter (the last wins, -l adds up) and the script."""
    options, script = {"-l": [], "-v": ""}, None
    while words:
        word = words.pop(0)
        if word == "-l":
            options["-l"].append(words.pop(0))
        elif word in ("-N", "-j", "-r", "-v", "-W", "-J", "-o", "-q"):
            options[word] = words.pop(0)
        else:
            script = word
    return options, script


def resources(lists):
    found = {}
    for part in (part for each in lists for part in each.split(":") for part in [part]):
        for one in part.split(","):
            name, _, value = one.partition("=")
            found[name] = value
    return found


def seconds(text):
    total = 0
    for part in text.split(":"):
        total = 60 * total + int(part)
    return total


def clock(total):
    return f"{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02}"


def claim(text):
    """The first number that no job has, claimed with the job's script: two jobs may submit at once."""
    for number in itertools.count(1):
        try:
            with open(SPOOL / f"{number}.sh", "x") as script:
                script.write(text)
            return number
        except FileExistsError:
            pass


def submit(words):
    given, script = options_of(words)
    text = pathlib.Path(script).read_text()
    lines = " ".join(re.findall(r"^#PBS (.*)$", text, re.M)).split()
    options, _ = options_of(lines)
    walltime = [each for each in options["-l"] + given["-l"] if each.startswith("walltime=")][-1]
    select = [each for each in options["-l"] + given["-l"] if each.startswith("select=")][-1]
    options.update({name: value for name, value in given.items() if name != "-l"})
    chunk = resources([select])
    number = claim(text)
    settings = {}
    for each in filter(None, options["-v"].split(",")):  # of a mere name, this command's own value
        name, equals, value = each.partition("=")
        settings[name] = value if equals else os.environ.get(name, "")
    job = {"id": f"{number}.stand-in", "options": options, "settings": settings, "walltime": seconds(walltime[9:]),
           "hosts": int(chunk["select"]), "mpiprocs": int(chunk["mpiprocs"]), "state": "Q", "run_count": 0,
           "home": os.getcwd(), "path": os.environ["PATH"]}
    save(job)
    subprocess.Popen([sys.executable, __file__, "run", str(number)], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    print(job["id"])


def load(number):
    return json.loads((SPOOL / f"{number.split('.')[0]}.job").read_text())


def save(job):
    """Whole or not at all: others read the file meanwhile."""
    path = SPOOL / f"{job['id'].split('.')[0]}.job"
    path.with_suffix(".new").write_text(json.dumps(job))
    path.with_suffix(".new").rename(path)


def waits_for(job):
    after = re.match(r"depend=afterany:(.*)", job["options"].get("-W", ""))
    return after and load(after[1])["state"] != "F"


def environment(job, number):
    nodes = SPOOL / f"{number}.nodes"
    nodes.write_text("localhost\n" * job["hosts"] * job["mpiprocs"])
    own = {name: value for name, value in os.environ.items() if name.startswith(("OMPI", "QSUB"))}
    return {**own, "HOME": str(SPOOL), "PATH": job["path"], "PBS_JOBID": job["id"],
            "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_NODEFILE": str(nodes), "NCPUS": "1",
            "PBS_O_WORKDIR": job["home"], "OMP_NUM_THREADS": "1", **job["settings"]}


def session(job):
    """All processes of the job: whatever is in its session."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(")", 1)[1].split()[3]) == job["pid"]:
                found.append(int(stat.parent.name))
        except OSError:
            pass  # gone meanwhile
    return found


def tell(job, number):
    for pid in session(job):
        try:
            os.kill(pid, number)
        except OSError:
            pass


def execute(number):
    job = load(number)
    while waits_for(job):
        time.sleep(0.1)
    while True:
        job["run_count"] += 1
        code = run_once(job, number)
        if not (SPOOL / f"{number}.rerun").exists():
            break
        (SPOOL / f"{number}.rerun").unlink()
    job.update(state="F", code=code)
    save(job)


def run_once(job, number):
    with open(SPOOL / f"{number}.out", "a") as output:
        process = subprocess.Popen(["bash", str(SPOOL / f"{number}.sh")], cwd=SPOOL,
                                   env=environment(job, number), stdout=output, stderr=output,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        job.update(state="R", pid=process.pid, start=time.time())
        save(job)
        for last_words in (signal.SIGTERM, signal.SIGKILL):
            try:
                return process.wait(job["walltime"] + GRACE if last_words == signal.SIGTERM else 10)
            except subprocess.TimeoutExpired:
                tell(job, last_words)
        return process.wait()


def rerun(number):
    """An operator's wish: the job ends, and runs again under its number."""
    (SPOOL / f"{number.split('.')[0]}.rerun").touch()
    tell(load(number), signal.SIGTERM)


def lose(number):
    """The job's first node loses its power: nothing of the job is left there, and PBS runs it again, if it may."""
    job = load(number)
    if job["options"].get("-r") == "y":
        (SPOOL / f"{number.split('.')[0]}.rerun").touch()
    tell(job, signal.SIGKILL)


def show(number):
    job = load(number)
    used = int(time.time() - job.get("start", time.time()))
    print(f"Job Id: {job['id']}\n    job_state = {job['state']}\n    run_count = {job['run_count']}\n"
          f"    Resource_List.walltime = {clock(job['walltime'] + used)}\n"
          f"    resources_used.walltime = {clock(used)}")


def main():
    name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
    if words[:1] == ["run"]:
        execute(words[1])
    elif name == "qsub":
        submit(words)
    elif name == "qstat":
        show(words[1])
    elif name == "qrerun":
        rerun(words[0])
    elif name == "lose-node":
        lose(words[0])
    elif name == "qsig":
        tell(load(words[2]), getattr(signal, words[1]))
    else:
        tell(load(words[0]), signal.SIGTERM)


main()
