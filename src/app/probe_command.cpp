#include "app/command.hpp"
#include "base/host_facts.hpp"
#include "base/text.hpp"
#include "launch/ended_ranks.hpp"
#include "launch/host_test.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "commands.hpp"

namespace lockstep::app {

namespace {

struct ProbeTold {
    std::vector<std::int64_t> processes;
    std::string launch;
    std::vector<std::string> peers;
};

Options probe_options(ProbeTold& told) {
    return {.command = "lockstep probe",
            .positions = {"[DIRECTORY]", 0, 1},
            .about = "Tests this host as lockstep launch does on all hosts after a loss: memory, "
                     "the disk of DIRECTORY, GPUs, a computation whose result is known on each "
                     "core, and the network to other hosts. Prints what it finds, within a few "
                     "seconds. Exit code 69: the host cannot be trained on.",
            .rows = {option::texts("--reach HOST,HOST", "hosts that this host must reach by TCP",
                                   told.peers),
                     option::wholes("--end PROCESS,PROCESS",
                                    "first end these processes, if they are ranks of --launch",
                                    told.processes),
                     option::text("--launch NAME", "value of LOCKSTEP_LAUNCH of those processes",
                                  told.launch)}};
}

} // namespace

ExitCode probe_command(Invocation const& invocation) {
    ProbeTold told;
    auto const words = probe_options(told).parse(invocation.arguments);
    std::vector<int> processes;
    std::ranges::transform(told.processes, std::back_inserter(processes),
                           [](std::int64_t each) { return static_cast<int>(each); });
    bool fit = true;
    auto const say = [](char const* kind, std::string const& text) {
        std::cout << "lockstep probe: " << kind << ": " << text << std::endl;
    };
    if (auto const left = launch::end_ranks(processes, told.launch); !left.empty()) {
        say("unfit", concat("processes: ", amount_of(left.size(), "rank"),
                            " of the last attempt cannot be ended"));
        fit = false;
    }
    auto const directory = words.positions.empty() ? "" : words.positions[0];
    for (auto const& finding : launch::test_host(directory, told.peers)) {
        say(launch::name_of(finding.kind), finding.text);
        fit = fit && finding.kind == launch::HostFinding::Kind::told;
    }
    if (fit) {
        say("fit", own_host());
    }
    return fit ? ExitCode::ok : ExitCode::unavailable;
}

std::string probe_help(HelpWords const&) {
    return help_of(probe_options);
}

} // namespace lockstep::app
