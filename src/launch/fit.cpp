#include "launch/fit.hpp"

#include "base/batch_job.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::launch {

namespace {

constexpr std::int64_t no_limit = 4096;
constexpr double usual_time_s = 12 * 3600;

std::string clock_text(double seconds) {
    auto const whole = std::llround(seconds);
    return concat(whole / 3600, ":", zero_padded(whole / 60 % 60, 2), ":",
                  zero_padded(whole % 60, 2));
}

[[noreturn]] void refuse(std::string const& what, std::string const& why, std::string const& cure) {
    throw Error(ExitCode::usage, {what, why, cure});
}

void check_partition(LaunchChoice const& choice, Scheduler const& scheduler) {
    if (scheduler.partitions.empty() || scheduler.partition(choice.partition) != nullptr) {
        return;
    }
    refuse(concat("--partition ", choice.partition),
           concat(scheduler.text, " has no such partition"),
           concat("Choose one of ", joined(scheduler.partition_names(), ", ")));
}

void check_size(LaunchChoice const& choice, config::Deck const& deck, Partition const& partition) {
    auto const has = concat("partition ", partition.name, " has only ", partition.text());
    if (choice.nodes > partition.nodes) {
        refuse(concat("--nodes ", choice.nodes), has, "Lower --nodes, or name another --partition");
    }
    if (choice.gpus > partition.gpus) {
        refuse(concat("--gpus-per-node ", choice.gpus), has,
               "Lower --gpus-per-node, or name another --partition");
    }
    if (choice.devices * deck.run.threads > partition.cores) {
        refuse(concat("--devices ", choice.devices, ", with ",
                      amount_of(deck.run.threads, "thread"), " each"),
               has, "Lower --devices or run.threads, or name another --partition");
    }
    if (seconds_of(choice.time).value_or(0) > partition.longest_s) {
        refuse(concat("--time ", choice.time),
               concat("partition ", partition.name, " ends jobs after ",
                      duration_text(partition.longest_s)),
               "Lower --time: a run that is requeued resumes where it stopped");
    }
}

/// Names are written into lines of a script that the scheduler reads: it ends a name at a blank,
/// and the line at its end.
void check_names(LaunchChoice const& choice) {
    for (auto const& [option, name] :
         {std::pair("--partition", &choice.partition), std::pair("--account", &choice.account)}) {
        bool const plain = std::ranges::all_of(*name, [](unsigned char letter) {
            return letter > ' ' && letter != 0x7F && letter != '"' && letter != '\'';
        });
        if (!plain) {
            refuse(concat(option, " \"", *name, "\""),
                   "schedulers take no names with blanks, quotation marks or line breaks",
                   concat("Correct ", option));
        }
    }
}

void check_ranks(LaunchChoice const& choice, config::Deck const& deck) {
    if (mode_of(choice, deck) != "ddp") {
        return;
    }
    if (choice.gpus > 0 && choice.devices > choice.gpus && !choice.oversubscribe) {
        refuse(concat("--devices ", choice.devices),
               concat("each node of the job has only ", amount_of(choice.gpus, "GPU")),
               "Lower --devices, or let ranks share GPUs with --oversubscribe");
    }
    auto const nodes = std::max<std::int64_t>(choice.nodes, 1) - choice.spares;
    if (nodes < 1) {
        refuse(concat("--spares ", choice.spares), "the job needs a node that is no spare",
               "Give a smaller number, or raise --nodes");
    }
    auto const ranks = nodes * choice.devices;
    bool const one_run = choice.search.empty(); // the ranks of a search train several trials
    if (one_run && deck.run.replicas > 0 && ranks > deck.run.replicas) {
        refuse(concat(ranks, " ranks for run.replicas = ", deck.run.replicas),
               "every rank needs at least one replica", "Lower --nodes or --devices");
    }
}

} // namespace

std::optional<std::string> job_time(std::string const& text) {
    auto const clock = text.substr(text.find('-') == std::string::npos ? 0 : text.find('-') + 1);
    auto const seconds = split(clock, ':').size() == 3 ? seconds_of(text) : std::nullopt;
    if (!seconds || !(*seconds >= 60 && *seconds < 1e8)) {
        return std::nullopt;
    }
    return clock_text(*seconds);
}

std::string likely_time(Partition const* partition) {
    return clock_text(partition == nullptr ? usual_time_s
                                           : std::min(usual_time_s, partition->longest_s));
}

std::int64_t likely_gpus(LaunchChoice const& choice, config::Deck const& deck,
                         Partition const* partition) {
    if (deck.run.device == "cpu" || partition == nullptr) {
        return 0;
    }
    return mode_of(choice, deck) == "single" ? std::min(partition->gpus, 1) : partition->gpus;
}

std::int64_t max_devices(LaunchChoice const& choice, config::Deck const& deck,
                         Partition const* partition) {
    if (choice.gpus > 0 && !choice.oversubscribe) {
        return choice.gpus;
    }
    return partition == nullptr ? no_limit
                                : std::max<std::int64_t>(partition->cores / deck.run.threads, 1);
}

std::int64_t likely_devices(LaunchChoice const& choice, config::Deck const& deck,
                            Partition const* partition) {
    auto const max = choice.gpus > 0 ? choice.gpus : max_devices(choice, deck, partition);
    if (mode_of(choice, deck) == "ddp" && deck.run.replicas > 0 && choice.search.empty()) {
        auto const share = deck.run.replicas / std::max<std::int64_t>(choice.nodes, 1);
        return std::clamp<std::int64_t>(share, 1, max);
    }
    return max == no_limit ? 0 : max;
}

void settle_job(LaunchChoice& choice, Scheduler const& scheduler) {
    auto const deck = deck_of(choice);
    check_names(choice);
    bool const answers = scheduler.name == choice.submit;
    auto const* const partition = answers ? scheduler.partition(choice.partition) : nullptr;
    if (answers) {
        check_partition(choice, scheduler);
    }
    choice.gpus = choice.gpus < 0 ? likely_gpus(choice, deck, partition) : choice.gpus;
    choice.time = choice.time.empty() ? likely_time(partition) : choice.time;
    bool const replicas_said = mode_of(choice, deck) != "ddp" && deck.run.replicas > 0;
    if (choice.devices == 0 && mode_of(choice, deck) != "single" && !replicas_said) {
        choice.devices = likely_devices(choice, deck, partition);
    }
    if (partition != nullptr) {
        check_size(choice, deck, *partition);
    }
    check_ranks(choice, deck);
}

} // namespace lockstep::launch
