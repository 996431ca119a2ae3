#include "launch/blame.hpp"
#include "launch/host_test.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep::launch;

namespace {

HostAnswer well(std::string const& name) {
    return {.host = {name, 1}, .answers = true};
}
HostAnswer silent(std::string const& name) {
    return {.host = {name, 1}, .answers = false};
}
HostAnswer bad(std::string const& name, std::string const& fault, bool certain = false) {
    return {.host = {name, 1}, .answers = true, .fault = fault, .certain = certain};
}

std::string names(std::vector<RetiredHost> const& hosts) {
    std::string text;
    for (auto const& each : hosts) {
        text += each.name + " ";
    }
    return text;
}

Suspicion const suspect{"b", "rank 1 (b) at step 5: its process is gone"};

} // namespace

TEST_CASE("a host is left out on evidence, and a healthy one never") {
    struct Case {
        char const* what;
        std::vector<HostAnswer> answers;
        Suspicion suspicion;
        char const* out;
    };
    auto third = suspect;
    third.losses = 3;
    auto certain = suspect;
    certain.certain = true;
    auto second = suspect;
    second.losses = 2;
    for (Case const& each :
         {Case{"a rank of it was killed", {well("a"), well("b"), well("c")}, suspect, ""},
          {"others have found it wrong", {well("a"), well("b"), well("c")}, certain, "b "},
          {"it is off", {well("a"), silent("b"), well("c")}, suspect, "b "},
          {"another one does not answer", {well("a"), well("b"), silent("c")}, suspect, ""},
          {"nobody is blamed", {well("a"), silent("b"), well("c")}, {}, ""},
          {"nobody else answers: who is cut off?", {silent("a"), silent("b")}, suspect, ""},
          {"its disk fails", {well("a"), bad("b", "disk: EIO"), well("c")}, suspect, "b "},
          {"the disk of all fails",
           {bad("a", "disk: EROFS"), bad("b", "disk: EROFS x"), bad("c", "disk: EROFS")},
           suspect,
           ""},
          {"another one has no memory", {well("a"), well("b"), bad("c", "memory: 1")}, suspect, ""},
          {"another one computes wrongly",
           {well("a"), well("b"), bad("c", "computation: 1", true)},
           {},
           "c "},
          {"all compute otherwise: another build",
           {bad("a", "computation: 1", true), bad("b", "computation: 1", true)},
           suspect,
           ""},
          {"its second loss", {well("a"), well("b")}, second, ""},
          {"its third loss", {well("a"), well("b")}, third, "b "},
          {"its third loss, and no other host", {silent("a"), well("b")}, third, ""}}) {
        INFO(each.what);
        CHECK(names(convicted(each.answers, each.suspicion, 1)) == each.out);
    }
    // What a restart needs is kept.
    CHECK(convicted({well("a"), well("b")}, third, 2).empty());
    auto const found = convicted({well("a"), silent("b.site")}, suspect, 1);
    REQUIRE(found.size() == 1);
    CHECK(found[0].evidence == "rank 1 (b) at step 5: its process is gone, and it does not answer");
}

TEST_CASE("a host that does not answer is missed, whoever has named another one or none") {
    std::vector<Host> const trained{{"a", 1}, {"b", 1}, {"c", 1}};
    std::string const cut_off = "lockstep: root cause: all ranks of a in training at step 5: this "
                                "host has lost contact with all other hosts. Look at its network";
    std::string const gone = "lockstep: root cause: rank 1 (b, cpu) in training at step 5: its "
                             "process is gone. Look at that host";
    struct Case {
        char const* what;
        std::vector<HostAnswer> answers;
        std::string told;
        bool launcher_names;
        char const* missed;
    };
    for (Case const& each :
         {Case{"mpirun could not start a daemon, and does not say where",
               {well("a"), silent("b"), well("c")},
               "",
               false,
               "b"},
          {"all answer: there is another reason", {well("a"), well("b"), well("c")}, "", false, ""},
          {"mpirun names a host", {well("a"), silent("b"), well("c")}, "", true, ""},
          {"a rank names one", {well("a"), silent("b"), well("c")}, gone, false, ""},
          {"a spare does not answer, which has not trained",
           {well("a"), well("b"), well("c"), silent("s")},
           "",
           false,
           ""},
          {"a host that answers calls itself cut off",
           {well("a"), silent("b"), well("c")},
           cut_off,
           false,
           "b"},
          {"so it does where mpirun names it, too",
           {well("a"), well("b"), silent("c")},
           cut_off,
           true,
           "c"},
          {"a host that is cut off does not answer: its own word stands",
           {silent("a"), well("b"), well("c")},
           cut_off,
           true,
           ""},
          {"nobody answers: this host is cut off",
           {silent("a"), silent("b"), silent("c")},
           "",
           false,
           ""}}) {
        INFO(each.what);
        auto const missed = missed_host(each.answers, trained, each.told, each.launcher_names);
        CHECK((missed ? missed->host : "") == each.missed);
        CHECK((!missed || (missed->whole_host && missed->who.ends_with(missed->host))));
    }
}

TEST_CASE("losses at a step that was reached before have no host to blame") {
    LossCount count;
    CHECK(count.add("b", 12) == 1);
    CHECK(count.add("b", 12) == 1);
    CHECK(count.add("b", 30) == 2);
    CHECK(count.add("c", 31) == 1);
    CHECK(count.add("b", 29) == 2);
    CHECK(count.add("b", 31) == 3);
}

TEST_CASE("spares take the places of hosts that are left out") {
    std::vector<Host> const plan{{"a", 1}, {"b", 1}};
    auto const chosen = [&](std::vector<HostAnswer> const& answers,
                            std::vector<std::string> const& retired) {
        std::string text;
        for (auto const& each : chosen_hosts(answers, plan, retired)) {
            text += each.name + " ";
        }
        return text;
    };
    CHECK(chosen({well("a"), well("b"), well("s")}, {}) == "a b ");
    CHECK(chosen({well("a"), silent("b"), well("s")}, {}) == "a s ");
    CHECK(chosen({well("a"), well("b"), well("s"), well("t")}, {"a.site"}) == "b s ");
    CHECK(chosen({well("a"), silent("b"), silent("s")}, {}) == "a ");
    CHECK(chosen({silent("a")}, {}).empty());
}

TEST_CASE("this host passes its own test") {
    lockstep::test::ScratchDir const scratch;
    CHECK(test_host(scratch.path(), {"localhost"}).empty());
    auto const found = test_host(scratch.path() / "absent", {});
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == HostFinding::Kind::unfit);
    CHECK(found[0].text.starts_with("disk: "));
    CHECK(computed_bits() == "13ea8f744ccc35fe"); // as Python's doubles have it
}
