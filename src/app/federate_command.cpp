#include "base/text.hpp"
#include "federate/coordinator.hpp"
#include "federate/report.hpp"
#include "federate/site.hpp"
#include "federate/sound_charter.hpp"
#include "lockstep/base/signals.hpp"

#include <algorithm>
#include <iostream>

#include "command_group.hpp"
#include "commands.hpp"
#include "federate_options.hpp"

namespace lockstep::app {

namespace {

ExitCode join_command(Invocation const& invocation) {
    FederateJoinTold told;
    auto const words = federate_join_options(told).parse(invocation.arguments);
    federate::require_site_name(told.site);
    federate::Federation const federation(words.positions[0]);
    auto const coordinator = hex_text(federation.coordinator());
    if (!told.coordinator.empty() && told.coordinator != coordinator) {
        throw Error(ExitCode::data,
                    {concat("the coordinator's fingerprint in ", words.positions[0],
                            " differs from --coordinator"),
                     concat("the fingerprint is ", coordinator, " in the directory and ",
                            told.coordinator, " in the option"),
                     "Ask the coordinator for the correct fingerprint by telephone or in another "
                     "way that does not use the directory"});
    }
    federate::require_sound(federation.charter());
    federate::require_fit_for_noise(federation);
    federate::require_key_outside(told.key, words.positions[0]);
    auto const key = federate::PrivateKey::open_or_make(told.key, told.site);
    federate::Site(federation, key, {}).join();
    std::cout << "site " << told.site << " has joined; its fingerprint is\n  "
              << hex_text(key.signing_key().public_key()) << "\n";
    if (told.coordinator.empty()) {
        std::cout << "the coordinator's key in the directory is trusted; compare its fingerprint "
                     "with the one that lockstep federate init printed:\n  "
                  << coordinator << "\n";
    }
    std::cout << "next: the coordinator must accept the site (--accept)\n";
    return ExitCode::ok;
}

ExitCode coordinate(FederateRoundTold const& told, std::filesystem::path const& directory) {
    SignalRequests const signals; // a copy command ends with us
    auto const copied = [&](federate::CopyCommand const& command) {
        return command.run(told.copy_limit_s, [&] { return signals.pending() != 0; });
    };
    if (!copied(told.fetch)) {
        return ExitCode::interrupted;
    }
    federate::Federation const federation(directory);
    auto const key = federate::PrivateKey::open(told.key, federate::coordinator_name);
    federate::Coordinator const coordinator(federation, key);
    auto const lock = federate::sole_process(directory / "coordinator.lock", "the coordinator");
    for (auto const& line : coordinator.admission().accept(told.accept)) {
        std::cout << line << "\n";
    }
    for (auto const& line : coordinator.admission().remove(told.remove)) {
        std::cout << line << "\n";
    }
    bool const changed = !told.accept.empty() || !told.remove.empty();
    if (changed && !copied(told.push)) { // the round itself may not be able to continue
        return ExitCode::interrupted;
    }
    if (told.abandon) {
        std::cout << coordinator.abandon() << std::endl;
        return copied(told.push) ? ExitCode::ok : ExitCode::interrupted;
    }
    using Waiting = federate::Coordinator::Waiting;
    auto const progress = coordinator.advance(told.close ? Waiting::for_nobody : Waiting::for_all);
    for (auto const& line : progress.lines) {
        std::cout << line << "\n";
    }
    if (progress.finished) {
        std::cout << "the federation has finished\n";
    } else if (!progress.waiting.empty()) {
        std::cout << "round " << federation.current_round() << " waits for "
                  << joined(progress.waiting, ", ") << "\n";
    }
    std::cout.flush();
    return copied(told.push) ? ExitCode::ok : ExitCode::interrupted;
}

ExitCode round_command(Invocation const& invocation) {
    outlive_listeners();
    FederateRoundTold told;
    auto const words = federate_round_options(told).parse(invocation.arguments);
    if (told.coordinator == !told.site.empty()) {
        throw Error(ExitCode::usage,
                    {"it is not clear who takes part in the round",
                     told.coordinator ? "both --site and --coordinator were given"
                                      : "neither --site nor --coordinator was given",
                     "Give either --site NAME or --coordinator"});
    }
    bool const of_coordinator =
        !told.accept.empty() || !told.remove.empty() || told.close || told.abandon;
    if (!told.coordinator && of_coordinator) {
        throw Error(ExitCode::usage,
                    {"--accept, --remove, --close and --abandon are for the coordinator",
                     "a site cannot use them", "Leave these options out"});
    }
    if (told.coordinator) {
        return coordinate(told, words.positions[0]);
    }
    return train_side_command("federate round", invocation);
}

ExitCode info_command(Invocation const& invocation) {
    FederateInfoTold told;
    auto const words = federate_info_options(told).parse(invocation.arguments);
    federate::Federation const federation(words.positions[0]);
    std::cout << (told.json ? federate::json_report(federation) : federate::report(federation));
    return ExitCode::ok;
}

CommandGroup federate_group() {
    return {
        .name = "federate",
        .commands = {
            {"init", [](Invocation const& i) { return train_side_command("federate init", i); },
             [](HelpWords const&) { return help_of(federate_init_options); }},
            {"join", join_command, [](HelpWords const&) { return help_of(federate_join_options); }},
            {"round", round_command,
             [](HelpWords const&) { return help_of(federate_round_options); }},
            {"info", info_command, [](HelpWords const&) { return help_of(federate_info_options); }},
            {"simulate",
             [](Invocation const& i) {
                 outlive_listeners();
                 return train_side_command("federate simulate", i);
             },
             [](HelpWords const&) { return help_of(federate_simulate_options); }}}};
}

} // namespace

ExitCode federate_command(Invocation const& invocation) {
    return run_one_of(federate_group(), invocation);
}

std::string federate_help(HelpWords const& words) {
    return help_of(federate_group(), words);
}

} // namespace lockstep::app
