#include "measure/loader_trial.hpp"

#include "base/clock.hpp"
#include "base/memory.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "data/loader.hpp"
#include "data/plan.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "measure/trial_directory.hpp"

#include <algorithm>

namespace lockstep::measure {

using comm::Communicator;

namespace {

std::string what_of(LoaderTrial const& trial) {
    return concat("loader ", trial.order       ? "order"
                             : trial.generated ? trial.generated->name
                                               : "files");
}

/// A loader that resumes from epoch to epoch, each rank a replica, so that buffers are made once.
class EpochReader {
  public:
    EpochReader(Communicator const& world, data::Dataset const& set, LoaderTrial const& trial)
        : plan_({.samples = set.samples(),
                 .batch = trial.batch,
                 .replicas = world.size(),
                 .shuffle = trial.shuffle == "full"    ? data::Shuffle::full
                            : trial.shuffle == "block" ? data::Shuffle::block
                                                       : data::Shuffle::none,
                 .blocks = set.blocks()}),
          loader_(set,
                  [this, rank = world.rank()](std::int64_t k) {
                      auto const steps = plan_.steps_per_epoch();
                      return std::optional(
                          plan_.indices(k / steps, plan_.part(k % steps, 0, rank)));
                  },
                  {trial.workers, trial.prefetch}) {}

    void read_epoch() { read(plan_.steps_per_epoch()); }
    void read(std::int64_t steps) {
        for (std::int64_t step = 0; step < steps; ++step) {
            loader_.next();
        }
    }

  private:
    data::TrainPlan plan_;
    data::Loader loader_;
};

Measurement measure_epochs(Communicator const& world, LoaderTrial const& trial,
                           std::string const& variant) {
    std::optional<data::Dataset> set;
    forget_peak_memory();
    auto const before = resident_memory();
    comm::agree(world, "opening the data", [&] { set.emplace(trial.files); });
    if (variant == "memory") {
        set->keep_in_memory(world.split_by_host());
    }
    // Chunks that were decoded in one epoch must not be there in the next.
    bool const fresh = variant == "loader" && trial.generated && trial.generated->name == "deflate";
    std::optional<EpochReader> reader;
    std::vector<double> seconds;
    for (std::int64_t repeat = -1; repeat < trial.repeats; ++repeat) {
        comm::agree(world, "starting the loader", [&] {
            if (fresh) {
                reader.reset();
                set.emplace(trial.files);
            }
            if (!reader && variant != "baseline") {
                reader.emplace(world, *set, trial);
            }
        });
        comm::barrier(world);
        Stopwatch const watch;
        comm::agree(world, "reading", [&] {
            if (variant == "baseline") {
                trial.generated->baseline(trial.files.files, trial.files, trial.workers);
            } else {
                reader->read_epoch();
            }
        });
        if (repeat >= 0) {
            seconds.push_back(watch.seconds());
        }
    }
    auto const peak = peak_memory();
    std::uint64_t sample_bytes = 0;
    std::uint64_t values = 0;
    for (auto const& field : set->inputs()) {
        sample_bytes += h5::elements(field.shape) * h5::size_of(field.type);
        values += h5::elements(field.shape);
    }
    auto const read = static_cast<std::uint64_t>(set->samples()) * sample_bytes;
    double const typical = median(seconds);
    // A baseline is done by every rank for all samples.
    double const epochs = variant == "baseline" ? world.size() : 1;
    Measurement measured{what_of(trial),
                         variant,
                         read,
                         world.size(),
                         seconds,
                         {{"samples_per_s", epochs * static_cast<double>(set->samples()) / typical},
                          {"bytes_per_s", epochs * static_cast<double>(read) / typical},
                          {"workers", trial.workers}}};
    if (variant == "loader") {
        // What a rank took for it, and what it may take: whatever the size of the data set.
        auto const batches = trial.prefetch * trial.batch * static_cast<std::int64_t>(values);
        measured.figures.emplace_back("memory_bytes",
                                      static_cast<double>(peak - std::min(before, peak)));
        measured.figures.emplace_back("allowed_bytes",
                                      static_cast<double>(batches) * sizeof(float) + (64U << 20U));
    }
    return measured;
}

/// From nothing to the first batch on every rank, when files are in the page cache.
Measurement measure_start(Communicator const& world, LoaderTrial const& trial) {
    std::vector<double> seconds;
    std::int64_t samples = 0;
    for (std::int64_t repeat = -1; repeat < trial.repeats; ++repeat) {
        std::optional<data::Dataset> set;
        comm::barrier(world);
        Stopwatch const watch;
        comm::agree(world, "opening the data and reading a batch", [&] {
            set.emplace(trial.files);
            EpochReader(world, *set, trial).read(1);
        });
        if (repeat >= 0) {
            seconds.push_back(watch.seconds());
        }
        samples = set->samples();
    }
    return {what_of(trial), "start", 0,
            world.size(),   seconds, {{"samples", static_cast<double>(samples)}}};
}

/// Times the first index of a data set that would fill a building: nothing made grows with it.
Measurement measure_first_index(Communicator const& world, LoaderTrial const& trial) {
    std::vector<double> seconds;
    std::int64_t sum = 0; // so that nothing is left out
    for (std::int64_t repeat = -1; repeat < trial.repeats; ++repeat) {
        Stopwatch const watch;
        data::TrainPlan const plan({.samples = std::int64_t{1000000000000},
                                    .batch = trial.batch,
                                    .replicas = world.size(),
                                    .seed = static_cast<std::uint64_t>(repeat + 1)});
        sum += plan.indices(0, {plan.part(0, 0, world.rank()).first, 1}).front();
        if (repeat >= 0) {
            seconds.push_back(watch.seconds());
        }
    }
    return {what_of(trial),
            "first-index",
            0,
            world.size(),
            seconds,
            {{"mean_index", static_cast<double>(sum) / static_cast<double>(trial.repeats + 1)}}};
}

} // namespace

std::vector<std::string> variants_of(LoaderTrial const& trial) {
    if (trial.order) {
        return {"first-index"};
    }
    if (!trial.generated) {
        return {"loader", "memory", "start"};
    }
    return trial.generated->baseline ? std::vector<std::string>{"loader", "memory", "baseline"}
                                     : std::vector<std::string>{"start", "loader"};
}

TrialFile::TrialFile(Communicator const& world, LoaderTrial& trial) : owner_(world.is_root()) {
    auto attempt = new_token();
    comm::broadcast_text(world, attempt);
    path_ = trial.directory / concat("lockstep-bench-loader-", attempt, ".h5");
    removal_ = removal_by_signal(world, path_);
    trial.files.files = path_.string() + trial.generated->files;
    comm::agree(world, "writing the data", [&] {
        if (owner_) {
            trial.generated->write(path_);
        }
    });
}

TrialFile::~TrialFile() {
    std::error_code ignored;
    if (owner_) {
        std::filesystem::remove_all(path_, ignored);
    }
}

Measurement measure_loader(Communicator const& world, LoaderTrial const& trial,
                           std::string const& variant) {
    return variant == "start" ? measure_start(world, trial)
           : trial.order      ? measure_first_index(world, trial)
                              : measure_epochs(world, trial, variant);
}

} // namespace lockstep::measure
