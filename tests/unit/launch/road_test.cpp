#include "launch/road.hpp"

#include <string>

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::launch;

namespace {

struct Case {
    char const* what;
    int code;
    AttemptStatus record;
    char const* told;
    bool killed; ///< the launcher
    bool asked;
    Road road;
    ExitCode word;
};

constexpr char const* gone = "lockstep: root cause: rank 3 (host2, cpu) in training at step 26: "
                             "its process is gone: it was killed, or crashed. Look at that host";
constexpr char const* full = "lockstep: root cause: rank 1 (host2, cpu) in checkpoint at step 20: "
                             "cannot write runs/a/log.txt: No space left on device. Free space";
constexpr char const* read_only =
    "lockstep: root cause: rank 0 (host1, cpu) in making the checkpoint "
    "directory at step 20: run directory runs/a cannot be used: "
    "Read-only file system. Make it writable again";
constexpr char const* oom = "lockstep: root cause: rank 1 (host2, cpu) in training at step 3: its "
                            "process was killed because memory ran out: since the start";

AttemptStatus record(std::string const& end, std::int64_t failure = 0, bool by_launcher = false) {
    return {.started = true, .end = end, .ended_by_launcher = by_launcher, .failure = failure};
}

} // namespace

TEST_CASE("the end of an attempt leads one way, and only a loss blames a host") {
    auto const lost = ExitCode::rank_lost;
    for (Case const& each :
         {Case{"done", 0, record("finished"), "", false, false, Road::word, ExitCode::ok},
          {"a mistake", 64, {}, "", false, false, Road::word, ExitCode::usage},
          {"damaged data", 65, {}, "", false, false, Road::word, ExitCode::data},
          {"no memory, told by a rank", 71, record("", 71), "", false, false, Road::word,
           ExitCode::memory},
          {"a full disk", 74, record("", 74), full, false, false, Road::word, ExitCode::io},
          {"a full disk, mpirun's code", 137, record("", 74), full, false, false, Road::word,
           ExitCode::io},
          {"a full disk that takes no record", 1, record(""), full, false, false, Road::word,
           ExitCode::io},
          {"a disk that is read-only", 1, record(""), read_only, false, false, Road::word,
           ExitCode::io},
          {"the walltime", 75, record("walltime"), "", false, false, Road::word,
           ExitCode::interrupted},
          {"a signal, and mpirun's code", 1, record("SIGTERM"), "", false, true, Road::word,
           ExitCode::interrupted},
          {"finished, and lost afterwards", 137, record("finished"), "", false, false, Road::word,
           ExitCode::ok},
          {"superseded", 79, record("", 79), "", false, false, Road::word, ExitCode::superseded},
          {"mpirun ended the ranks because a host was lost", 205, record("SIGTERM", 0, true), "",
           false, false, Road::loss, lost},
          {"a loss", 76, record("", 76), gone, false, false, Road::loss, lost},
          {"a loss, mpirun's code", 137, record("", 76), gone, false, false, Road::loss, lost},
          {"a loss without a word", 139, record(""), "", false, false, Road::loss, lost},
          {"the kernel wanted memory", 137, record("", 76), oom, false, false, Road::memory, lost},
          {"mpirun was killed", 137, record("", 76), gone, true, false, Road::launcher, lost}}) {
        INFO(each.what);
        AttemptEnd end{.code = each.code, .record = each.record, .told = each.told};
        end.launcher_killed = each.killed;
        auto const ending = ending_of(end, each.asked);
        CHECK(ending.road == each.road);
        CHECK(ending.word == each.word);
    }
}

TEST_CASE("a root-cause line names a host") {
    CHECK(host_named_in(gone) == "host2");
    CHECK(host_named_in("lockstep: root cause: all ranks of node-7.site in training at step 5: "
                        "mpirun (x) has") == "node-7.site");
    CHECK(
        host_named_in("lockstep: root cause: rank 2 (host3, cuda:1), last heard in training: x") ==
        "host3");
    CHECK(host_named_in("lockstep: root cause: rank 2 (host3) in start-up: x") == "host3");
    CHECK(host_named_in("lockstep: root cause: rank 1 in start-up: it waits: rank 0 (a) has")
              .empty());
    CHECK(host_named_in("lockstep: root cause: data.batch = 0 (deck.ini:3): it").empty());
    CHECK(host_named_in("").empty());
}
