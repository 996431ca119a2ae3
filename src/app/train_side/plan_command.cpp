#include "base/escaped.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/topology.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"
#include "measure/train_side/estimate_table.hpp"
#include "monitor/root_cause.hpp"
#include "train/run_plan.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>

#include "../agreed_words.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

namespace {

std::string size_text(double bytes) {
    return bytes_text(static_cast<std::uint64_t>(bytes));
}

std::string number_text(double number) {
    return count_text(static_cast<std::int64_t>(number));
}

void print_line(std::string const& name, std::string const& text) {
    std::cout << std::left << std::setw(12) << name << escaped_line(text) << "\n";
}

/// "1.0 MiB, then 3 of 23.8 MiB and 2.1 MiB": equal neighbours are counted.
std::string buckets_text(std::vector<double> const& buckets) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < buckets.size();) {
        auto const end = std::find_if(buckets.begin() + static_cast<std::ptrdiff_t>(at),
                                      buckets.end(), [&](double b) { return b != buckets[at]; });
        auto const count = static_cast<std::size_t>(end - buckets.begin()) - at;
        parts.push_back(concat(count > 1 ? concat(count, " of ") : "", size_text(buckets[at])));
        at += count;
    }
    return concat(buckets.size(), ": ", joined(parts, ", "));
}

void print_rank(std::size_t rank, train::PlannedRank const& planned) {
    auto const first = planned.replicas.first;
    auto const last = first + planned.replicas.count - 1;
    auto const replicas = last > first ? concat(first, " to ", last) : std::to_string(first);
    std::cout << std::left << std::setw(8) << rank << std::setw(24) << planned.place.host
              << std::setw(10) << planned.place.device << std::setw(14) << replicas
              << number_text(planned.owned) << "\n";
}

void print_map(std::vector<train::PlannedRank> const& ranks) {
    constexpr std::size_t max = 64;
    std::cout << "\n"
              << std::left << std::setw(8) << "rank" << std::setw(24) << "host" << std::setw(10)
              << "device" << std::setw(14) << "replicas"
              << "parameters it sums and updates\n";
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        bool const shown = ranks.size() <= max || rank < max - 2 || rank + 1 == ranks.size();
        if (shown) {
            print_rank(rank, ranks[rank]);
        } else if (rank == max - 2) {
            std::cout << "…\n";
        }
    }
}

std::string sets_text(train::RunPlan const& plan) {
    return plan.deck.task.kind == "ppo"
               ? std::string()
               : concat(", ", count_text(plan.validation), " for validation, ",
                        count_text(plan.test), " for the test");
}

void print_plan(train::RunPlan const& plan) {
    auto const& deck = plan.deck;
    auto const& memory = plan.memory;
    auto const& training = memory.training;
    print_line("run", concat(deck.run.directory, ": ", measure::start_text(plan)));
    print_line("data",
               concat(count_text(plan.samples),
                      deck.task.kind == "ppo" ? " samples played in an iteration" : " samples",
                      sets_text(plan), "; a step takes ", count_text(plan.samples_per_step), ": ",
                      amount_of(deck.run.replicas, "replica"), " x ", deck.data.batch,
                      " samples x ", deck.optimizer.accumulate,
                      deck.optimizer.accumulate == 1 ? " micro-batch" : " micro-batches"));
    print_line("length", concat(count_text(plan.steps), " steps, ",
                                count_text(plan.steps_per_epoch), " per epoch"));
    for (auto const& remark : plan.remarks) {
        print_line("", remark);
    }
    print_line("model", concat(deck.model.name, ": ", number_text(plan.parameters + plan.frozen),
                               " parameters in ", plan.tensors, " tensors",
                               plan.frozen > 0
                                   ? concat(", ", number_text(plan.parameters), " of them trained")
                                   : ""));
    for (std::size_t i = 0; i < plan.updates.size(); ++i) {
        print_line(i == 0 ? "groups" : "", plan.updates[i]);
    }
    print_line("buckets", buckets_text(plan.buckets));
    print_line("memory", concat("about ", size_text(memory.total()), " per rank",
                                memory.activations ? "" : ", plus activations"));
    for (auto const& [name, bytes] :
         {std::pair("program", memory.program), std::pair("parameters", training.parameters),
          std::pair("gradients", training.gradients + training.averages),
          std::pair("exchange", training.exchange), std::pair("optimizer", training.optimizer),
          std::pair("batches", memory.batches), std::pair("checkpoint", memory.checkpoint),
          std::pair("copies", memory.copies),
          std::pair("activations", memory.activations.value_or(0)),
          std::pair("graphs", memory.graphs)}) {
        if (bytes > 0) {
            std::cout << std::setw(12) << "";
            print_line(name, size_text(bytes));
        }
    }
    print_line("checkpoint", concat(size_text(plan.checkpoint_bytes), "; ", deck.checkpoint.keep,
                                    deck.checkpoint.keep == 1 ? " is kept, " : " are kept, ",
                                    size_text(plan.checkpoint_bytes *
                                              static_cast<double>(deck.checkpoint.keep + 1)),
                                    " including the one being written"));
    print_map(plan.ranks);
}

/// Collective  over `world`
std::vector<train::RankPlace> places_here(comm::Communicator const& world) {
    auto const topology = comm::Topology::discover(world);
    auto const devices = comm::all_gather_text(world, world.device());
    std::vector<train::RankPlace> places;
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        places.push_back({topology.host_of_rank[rank], devices[rank]});
    }
    return places;
}

/// Ranks that nobody has started.
std::vector<train::RankPlace> imagined(PlanTold const& told, std::string const& device) {
    auto const per_host = told.per_host > 0 ? told.per_host : told.ranks;
    std::vector<train::RankPlace> places;
    for (std::int64_t rank = 0; rank < told.ranks; ++rank) {
        places.push_back({concat("host ", rank / per_host),
                          device == "cpu"
                              ? device
                              : concat(device.substr(0, device.find(':')), ":", rank % per_host)});
    }
    return places;
}

} // namespace

ExitCode plan_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            PlanTold told;
            auto const words = agreed_words(world, plan_options(told), invocation.arguments);
            auto const [deck, others, places] = read_deck(world, words, 1);
            context.root_cause.set_places(places);
            context.session.bind_device(train::device_of_rank(world, deck.run));
            auto ranks = places_here(world);
            if (told.ranks > 0) {
                ranks = imagined(told, world.device());
            }
            comm::agree(world, "planning", [&, &deck = deck] {
                if (world.is_root()) {
                    print_plan(train::plan_run(deck, ranks));
                }
            });
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
