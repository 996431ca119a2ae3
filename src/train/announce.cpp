#include "announce.hpp"

#include "base/hash.hpp"
#include "base/host_facts.hpp"
#include "base/text.hpp"
#include "batches/training_memory.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "device/device.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <algorithm>
#include <functional>

namespace lockstep::train {

namespace {

bool is_warning(std::string const& remark) {
    return remark.starts_with("warning");
}

/// What this rank's bits may depend on besides deck and data.
std::string computes_with() {
    return concat("LibTorch ", TORCH_VERSION, " (build ", hex(hash64(at::show_config())), "), ",
                  at::get_cpu_capability(), ", ", amount_of(at::get_num_threads(), "thread"), ", ",
                  processor_text());
}

/// What each rank told rank 0.
struct OfRanks {
    std::vector<std::string> devices;
    std::vector<std::string> places;
    std::vector<std::string> computes_with;
};

Started start_of(OpenedRun const& run, std::string const& version, OfRanks const& ranks) {
    auto const& deck = run.facts().deck();
    auto const& layout = run.engine()->layout();
    auto share = equal_share(static_cast<double>(layout.size), run.facts().nodes[0].count,
                             run.facts().world.size());
    share.largest = largest_parameter(layout);
    share.on_accelerator = !run.facts().device.is_cpu();
    auto const memory = training_memory(deck, share);
    Started started{.version = version,
                    .attempt = run.facts().attempt,
                    .host_of_rank = run.facts().topology.host_of_rank,
                    .device_of_rank = ranks.devices,
                    .replicas_of_rank = {},
                    .replicas = deck.run.replicas,
                    .seed = deck.run.seed,
                    .model = deck.model.name,
                    .parameters = layout.parameters,
                    .frozen = layout.frozen(),
                    .backend = run.engine()->exchange().name(),
                    .batch = deck.data.batch,
                    .accumulate = deck.optimizer.accumulate,
                    .train_samples = run.work().train ? run.work().train->samples() : 0,
                    .validation_samples = run.data().samples(DataModule::Set::validation),
                    .test_samples = run.data().samples(DataModule::Set::test),
                    .steps_per_epoch = run.course().steps_per_epoch(),
                    .total_steps = run.course().total_steps(),
                    .base_rate = deck.optimizer.learning_rate,
                    .peak_rate = run.course().peak_rate(),
                    .class_names = run.work().samples.class_names,
                    .class_counts = run.work().samples.class_counts,
                    .class_weights = run.work().task->class_weights(),
                    .directory = deck.run.directory,
                    .memory_needed = static_cast<std::uint64_t>(memory.total()),
                    .memory_of_rank = ranks.places,
                    .computes_with = ranks.computes_with,
                    .code = run.facts().code,
                    .remark = {},
                    .delta = deck.privacy.is_on() ? deck.privacy.delta : 0};
    std::vector<std::string> remarks;
    std::ranges::remove_copy_if(run.remarks().texts(), std::back_inserter(remarks), is_warning);
    started.remark = joined(remarks, "; ");
    for (auto const& node : run.facts().nodes) {
        started.replicas_of_rank.push_back(node.count);
    }
    return started;
}

} // namespace

void announce(OpenedRun const& run, RunOptions const& options,
              std::vector<std::string> const& forced, Progress const& progress,
              Observers const& observers) {
    auto const& world = run.facts().world;
    OfRanks ranks{.devices = comm::gather_text(world, device_text(run.facts().device)),
                  .places = run.facts().deck().monitor.weight_hash == "true"
                                ? comm::gather_text(world, run.engine()->memory_text())
                                : std::vector<std::string>{},
                  .computes_with = comm::gather_text(world, computes_with())};
    if (std::ranges::adjacent_find(ranks.computes_with, std::not_equal_to()) ==
        ranks.computes_with.end()) {
        ranks.computes_with.resize(std::min<std::size_t>(ranks.computes_with.size(), 1));
    }
    comm::agree(world, "reporting how the run starts", [&] {
        if (!world.is_root()) {
            return;
        }
        observers.tell(start_of(run, options.version, ranks));
        for (auto const& text : run.remarks().texts()) {
            if (is_warning(text)) { // which no option of the command line hides
                observers.tell(Remark{text});
            }
        }
        for (auto const& text : run.remarks().details()) {
            observers.tell(Remark{text, true});
        }
        for (auto const& text : options.remarks) {
            observers.tell(Remark{text});
        }
        if (auto const& found = run.facts().setup.found) {
            observers.tell(
                Resumed{found->file.path().string(), progress.step, found->skipped, forced});
        }
    });
}

} // namespace lockstep::train
