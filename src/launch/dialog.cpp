#include "dialog.hpp"

#include "base/escaped.hpp"
#include "base/host_facts.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "launch/fit.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "monitor/terminal.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>

#include "host_devices.hpp"
#include "question.hpp"

namespace lockstep::launch {

namespace {

using monitor::Paint;
using monitor::Style;

std::int64_t number(std::string const& text) {
    return number_of<std::int64_t>(text).value();
}

/// Decks below inputs/ and here, as a reader would look for them.
std::vector<std::string> decks_here() {
    namespace fs = std::filesystem;
    std::vector<std::string> decks;
    for (char const* const place : {".", "inputs"}) {
        std::error_code none;
        for (auto const& entry : fs::directory_iterator(place, none)) {
            if (entry.path().extension() == ".ini") {
                decks.push_back(entry.path().lexically_normal().string());
            }
        }
    }
    std::sort(decks.begin(), decks.end());
    return decks;
}

/// Whether the command line has a key of the deck.
bool says(LaunchChoice const& choice, std::string const& key) {
    config::DeckSource source;
    source.take_options(choice.train);
    return source.values().contains(key);
}

bool names_a_deck(LaunchChoice const& choice) {
    auto const words = config::DeckSource().take_options(choice.train);
    return std::any_of(words.begin(), words.end(),
                       [](std::string const& word) { return !word.starts_with("--"); });
}

void ask_deck(LaunchChoice& choice) {
    auto const decks = decks_here();
    for (std::size_t i = 0; i < decks.size(); ++i) {
        std::cout << std::setw(4) << i + 1 << "  " << decks[i] << "\n";
    }
    auto const meaning = [&](std::string const& answer) {
        auto const index = number_of<std::size_t>(answer).value_or(0);
        auto deck = index > 0 && index <= decks.size() ? decks[index - 1] : answer;
        if (deck.empty()) {
            throw std::string("the path of a deck");
        }
        auto tried = choice;
        tried.train.insert(tried.train.begin(), deck);
        deck_of(tried);
        return deck;
    };
    auto const deck = ask({decks.empty() ? "Deck" : "Deck, by number or path",
                           decks.size() == 1 ? decks.front() : "", meaning});
    choice.train.insert(choice.train.begin(), deck);
}

void ask_mode(LaunchChoice& choice, config::Deck const& deck) {
    std::cout << "  single  one process on one device\n"
              << (choice.search.empty() ? "  dp      one process, concurrent replicas on threads\n"
                                        : "")
              << "  ddp     a process for each device, started by MPI\n";
    auto const likely = mode_of(choice, deck);
    choice.mode =
        ask({"Mode", likely == "dp" && !choice.search.empty() ? "ddp" : likely,
             choice.search.empty() ? one_of({"single", "dp", "ddp"}) : one_of({"single", "ddp"})});
}

void ask_count_here(LaunchChoice& choice, config::Deck const& deck, HostDevices const& here) {
    if (mode_of(choice, deck) == "dp" && deck.run.replicas == 0) {
        choice.devices = number(ask({concat("Concurrent replicas (this host: ", here.text(), ")"),
                                     std::to_string(here.count()), from_to(1, 4096)}));
    }
    if (mode_of(choice, deck) == "ddp" && choice.hostfile.empty()) {
        auto const max = choice.oversubscribe ? 4096 : here.count();
        choice.devices = number(ask({concat("Ranks on each host (this host: ", here.text(), ")"),
                                     std::to_string(here.count()), from_to(1, max)}));
    }
}

/// Asked only where there is a choice.
void ask_partition(LaunchChoice& choice, Scheduler const& scheduler) {
    if (!choice.partition.empty() || scheduler.partitions.size() < 2) {
        return;
    }
    auto const names = scheduler.partition_names();
    auto const name = ask({"Partition", names.front(), one_of(names)});
    choice.partition = name == names.front() ? "" : name;
}

/// How large the job is, as far as its partition goes.
void ask_job(LaunchChoice& choice, config::Deck const& deck, Scheduler const& scheduler) {
    ask_partition(choice, scheduler);
    auto const* const partition = scheduler.partition(choice.partition);
    bool const has_gpus = partition == nullptr || partition->gpus > 0;
    if (choice.gpus < 0 && deck.run.device != "cpu" && has_gpus) {
        choice.gpus =
            number(ask({"GPUs on each node", std::to_string(likely_gpus(choice, deck, partition)),
                        from_to(0, partition == nullptr ? 64 : partition->gpus)}));
    }
    auto const mode = mode_of(choice, deck);
    if (mode == "ddp" && choice.nodes == 0) {
        choice.nodes = number(
            ask({"Nodes", "1", from_to(1, partition == nullptr ? 100'000 : partition->nodes)}));
    }
    bool const counts = mode == "ddp" || (mode == "dp" && deck.run.replicas == 0);
    if (counts && choice.devices == 0) {
        auto const likely = likely_devices(choice, deck, partition);
        choice.devices = number(ask({mode == "dp" ? "Concurrent replicas" : "Ranks on each node",
                                     likely > 0 ? std::to_string(likely) : "",
                                     from_to(1, max_devices(choice, deck, partition))}));
    }
    if (choice.time.empty()) {
        choice.time = ask(
            {"Time, hours:minutes:seconds", likely_time(partition), [](std::string const& answer) {
                 auto const time = job_time(answer);
                 if (!time) {
                     throw std::string("hours:minutes:seconds");
                 }
                 return *time;
             }});
    }
}

std::int64_t replicas_of(LaunchChoice const& choice, config::Deck const& deck) {
    if (deck.run.replicas > 0) {
        return deck.run.replicas;
    }
    if (mode_of(choice, deck) == "single" || !choice.search.empty()) {
        return 1; // of each trial of a search, on any number of ranks
    }
    return std::max<std::int64_t>(choice.devices, 1) * std::max<std::int64_t>(choice.nodes, 1);
}

/// Asked only where it makes a difference.
void ask_rate(LaunchChoice& choice, config::Deck const& deck) {
    auto const replicas = replicas_of(choice, deck);
    auto const reference = deck.optimizer.reference_replicas;
    if (replicas == reference || deck.data.global_batch > 0) {
        return;
    }
    auto const ratio = static_cast<double>(replicas) / static_cast<double>(reference);
    auto const rate = deck.optimizer.learning_rate;
    std::cout << "  A step trains on the samples of " << amount_of(replicas, "replica")
              << "; the learning rate " << rate << " was chosen for "
              << amount_of(reference, "replica") << ".\n  Scaled learning rates: none " << rate
              << ", linear " << rate * ratio << ", sqrt " << rate * std::sqrt(ratio) << "\n";
    choice.scale_rate = ask({"Scale the learning rate", deck.optimizer.scale_learning_rate,
                             one_of({"none", "linear", "sqrt"})});
}

void show_devices(HostDevices const& here, std::vector<Host> const& hosts,
                  Scheduler const& scheduler) {
    Paint const paint(monitor::colours_welcome());
    write_obeyed(std::cout, paint(Style::bold, "This host"));
    std::cout << "  " << here.cores << " cores, " << processor_text() << "\n";
    for (std::size_t i = 0; i < here.gpus.size(); ++i) {
        auto const& gpu = here.gpus[i];
        std::cout << "  GPU " << i << "  " << gpu.name << ", " << bytes_text(gpu.memory) << "  "
                  << gpu.uuid << "\n";
    }
    std::cout << (here.gpus.empty() ? "  no GPU that the run may use\n" : "");
    write_obeyed(std::cout, paint(Style::bold, "Scheduler"));
    std::cout << "  " << (scheduler.text.empty() ? "none" : scheduler.text) << "\n";
    for (auto const& partition : scheduler.partitions) {
        std::cout << "  partition " << partition.name << ": " << partition.text()
                  << (std::isfinite(partition.longest_s)
                          ? concat(", jobs of at most ", duration_text(partition.longest_s))
                          : "")
                  << "\n";
    }
    for (auto const& host : hosts) {
        if (!host.name.empty()) {
            write_obeyed(std::cout, paint(Style::bold, "Host"));
            std::cout << "  " << host.name << ", " << amount_of(host.ranks, "rank") << "\n";
        }
    }
    std::cout << "\n";
}

} // namespace

void ask_for_the_rest(LaunchChoice& choice, Scheduler const& scheduler) {
    bool const has_deck = names_a_deck(choice);
    auto const here = devices_here(has_deck ? deck_of(choice).run : config::Run());
    show_devices(here, hosts_of_job(choice.hostfile, 0, here.count()), scheduler);
    if (!has_deck) {
        ask_deck(choice);
    }
    auto const deck = deck_of(choice);
    if (choice.mode.empty() && !says(choice, "run.mode")) {
        ask_mode(choice, deck);
    }
    if (choice.submit.empty()) {
        choice.submit = scheduler.name.empty()
                            ? "no"
                            : ask({"Submit a job, or start it on this host", scheduler.name,
                                   one_of({scheduler.name, "here"})});
        choice.submit = choice.submit == "here" ? "no" : choice.submit;
    }
    if (choice.submit != "no") {
        ask_job(choice, deck, scheduler);
    } else if (choice.devices == 0) {
        ask_count_here(choice, deck, devices_here(deck.run));
    }
    if (choice.scale_rate.empty() && !says(choice, "optimizer.scale-learning-rate")) {
        ask_rate(choice, deck);
    }
}

void confirm(std::string const& shown, std::string const& question) {
    std::cout << "\n" << shown << "\n\n";
    if (ask({question, "yes", one_of({"yes", "no"})}) == "no") {
        throw Error(ExitCode::usage, {"nothing was started", "the answer was no",
                                      "To change the settings, start lockstep launch again with "
                                      "the options that lockstep launch --help lists"});
    }
}

} // namespace lockstep::launch
