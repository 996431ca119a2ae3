#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/clock.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "data/loader.hpp"
#include "data/plan.hpp"
#include "h5/file.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "measure/bench_loader.hpp"
#include "measure/measurement.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <unistd.h>

namespace lockstep::app {

namespace {

using comm::Communicator;

struct BenchLoaderOptions {
    std::optional<measure::GeneratedSet> generated; ///< none: files of the user, or no data at all
    bool order = false;                             ///< the order alone is measured
    data::DatasetOptions files;
    std::filesystem::path directory;
    std::vector<std::string> variants;
    std::string shuffle;
    std::int64_t batch = 0;
    int workers = 2;
    int prefetch = 4;
    std::int64_t repeats = 0;
    bool json = false;
};

std::vector<std::string> variants_of(BenchLoaderOptions const& options) {
    if (options.order) {
        return {"first-index"};
    }
    if (!options.generated) {
        return {"loader", "memory", "start"};
    }
    return options.generated->baseline ? std::vector<std::string>{"loader", "memory", "baseline"}
                                       : std::vector<std::string>{"start", "loader"};
}

BenchLoaderOptions bench_loader_options(std::vector<std::string> arguments) {
    BenchLoaderOptions options;
    options.json = take_flag(arguments, "--json");
    options.files = {.files = take_option(arguments, "--files", ""),
                     .inputs = take_option(arguments, "--inputs", "inputs"),
                     .targets = take_option(arguments, "--targets", "targets"),
                     .sample_per_file = take_flag(arguments, "--sample-per-file")};
    auto const kind = take_option(arguments, "--kind", "small");
    options.order = kind == "order";
    if (options.files.files.empty() && !options.order) {
        options.generated = measure::generated_set(kind);
    }
    options.directory =
        take_option(arguments, "--directory", std::filesystem::temp_directory_path().string());
    options.variants = variants_of(options);
    if (auto const variant = take_option(arguments, "--variant", ""); !variant.empty()) {
        if (std::find(options.variants.begin(), options.variants.end(), variant) ==
            options.variants.end()) {
            throw Error(ExitCode::usage, {concat("--variant ", variant), "there is no such variant",
                                          concat("There are ", joined(options.variants, ", "))});
        }
        options.variants = {variant};
    }
    auto const& generated = options.generated;
    options.shuffle = take_option(arguments, "--shuffle", generated ? generated->shuffle : "full");
    options.batch = measure::whole_number(
        "--batch",
        take_option(arguments, "--batch", std::to_string(generated ? generated->batch : 32)));
    options.workers = static_cast<int>(
        measure::whole_number("--workers", take_option(arguments, "--workers", "2")));
    options.repeats = measure::whole_number("--repeats", take_option(arguments, "--repeats", "5"));
    expect_arguments(arguments, 0, 0,
                     "lockstep bench loader [--kind small|large|deflate|shards|order]");
    return options;
}

std::string what_of(BenchLoaderOptions const& options) {
    return concat("loader ", options.order       ? "order"
                             : options.generated ? options.generated->name
                                                 : "files");
}

/// A loader that resumes from epoch to epoch, each rank a replica, so that buffers are made once.
class EpochReader {
  public:
    EpochReader(Communicator const& world, data::Dataset const& set,
                BenchLoaderOptions const& options)
        : plan_({.samples = set.samples(),
                 .batch = options.batch,
                 .replicas = world.size(),
                 .shuffle = options.shuffle == "full"    ? data::Shuffle::full
                            : options.shuffle == "block" ? data::Shuffle::block
                                                         : data::Shuffle::none,
                 .blocks = set.blocks()}),
          loader_(set,
                  [this, rank = world.rank()](std::int64_t k) {
                      auto const steps = plan_.steps_per_epoch();
                      return std::optional(
                          plan_.indices(k / steps, plan_.part(k % steps, 0, rank)));
                  },
                  {options.workers, options.prefetch}) {}

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

measure::Measurement measure(Communicator const& world, BenchLoaderOptions const& options,
                             std::string const& variant) {
    std::optional<data::Dataset> set;
    forget_peak_memory();
    auto const before = resident_memory();
    comm::agree(world, "opening the data", [&] { set.emplace(options.files); });
    if (variant == "memory") {
        set->keep_in_memory(world.split_by_host());
    }
    // Chunks that were decoded in one epoch must not be there in the next.
    bool const fresh =
        variant == "loader" && options.generated && options.generated->name == "deflate";
    std::optional<EpochReader> reader;
    std::vector<double> seconds;
    for (std::int64_t repeat = -1; repeat < options.repeats; ++repeat) {
        comm::agree(world, "starting the loader", [&] {
            if (fresh) {
                reader.reset();
                set.emplace(options.files);
            }
            if (!reader && variant != "baseline") {
                reader.emplace(world, *set, options);
            }
        });
        comm::barrier(world);
        Stopwatch const watch;
        comm::agree(world, "reading", [&] {
            if (variant == "baseline") {
                options.generated->baseline(options.files.files, options.files, options.workers);
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
    double const typical = measure::median(seconds);
    // A baseline is done by every rank for all samples.
    double const epochs = variant == "baseline" ? world.size() : 1;
    measure::Measurement measured{
        what_of(options),
        variant,
        read,
        world.size(),
        seconds,
        {{"samples_per_s", epochs * static_cast<double>(set->samples()) / typical},
         {"bytes_per_s", epochs * static_cast<double>(read) / typical},
         {"workers", options.workers}}};
    if (variant == "loader") {
        // What a rank took for it, and what it may take: whatever the size of the data set.
        auto const batches = options.prefetch * options.batch * static_cast<std::int64_t>(values);
        measured.figures.emplace_back("memory_bytes",
                                      static_cast<double>(peak - std::min(before, peak)));
        measured.figures.emplace_back("allowed_bytes",
                                      static_cast<double>(batches) * sizeof(float) + (64U << 20U));
    }
    return measured;
}

/// From nothing to the first batch on every rank, when files are in the page cache.
measure::Measurement measure_start(Communicator const& world, BenchLoaderOptions const& options) {
    std::vector<double> seconds;
    std::int64_t samples = 0;
    for (std::int64_t repeat = -1; repeat < options.repeats; ++repeat) {
        std::optional<data::Dataset> set;
        comm::barrier(world);
        Stopwatch const watch;
        comm::agree(world, "opening the data and reading a batch", [&] {
            set.emplace(options.files);
            EpochReader(world, *set, options).read(1);
        });
        if (repeat >= 0) {
            seconds.push_back(watch.seconds());
        }
        samples = set->samples();
    }
    return {what_of(options), "start", 0,
            world.size(),     seconds, {{"samples", static_cast<double>(samples)}}};
}

/// Of a data set that would fill a building: nothing is made that grows with it.
measure::Measurement measure_first_index(Communicator const& world,
                                         BenchLoaderOptions const& options) {
    std::vector<double> seconds;
    std::int64_t sum = 0; // so that nothing is left out
    for (std::int64_t repeat = -1; repeat < options.repeats; ++repeat) {
        Stopwatch const watch;
        data::TrainPlan const plan({.samples = std::int64_t{1000000000000},
                                    .batch = options.batch,
                                    .replicas = world.size(),
                                    .seed = static_cast<std::uint64_t>(repeat + 1)});
        sum += plan.indices(0, {plan.part(0, 0, world.rank()).first, 1}).front();
        if (repeat >= 0) {
            seconds.push_back(watch.seconds());
        }
    }
    return {what_of(options),
            "first-index",
            0,
            world.size(),
            seconds,
            {{"mean_index", static_cast<double>(sum) / static_cast<double>(options.repeats + 1)}}};
}

/// The generated file, gone with this object.
class BenchFile {
  public:
    BenchFile(Communicator const& world, BenchLoaderOptions& options) : owner_(world.is_root()) {
        std::int64_t attempt = ::getpid();
        comm::broadcast(world, std::span(&attempt, 1));
        path_ = options.directory / concat("lockstep-bench-loader-", attempt, ".h5");
        options.files.files = path_.string() + options.generated->files;
        comm::agree(world, "writing the data", [&] {
            if (owner_) {
                options.generated->write(path_);
            }
        });
    }
    BenchFile(BenchFile const&) = delete;
    BenchFile& operator=(BenchFile const&) = delete;
    ~BenchFile() {
        std::error_code ignored;
        if (owner_) {
            std::filesystem::remove_all(path_, ignored);
        }
    }

  private:
    bool owner_;
    std::filesystem::path path_;
};

} // namespace

ExitCode bench_loader_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            BenchLoaderOptions options;
            comm::agree(world, "reading the command line",
                        [&] { options = bench_loader_options(invocation.arguments); });
            std::optional<BenchFile> file;
            if (options.generated) {
                file.emplace(world, options);
            }
            for (auto const& variant : options.variants) {
                auto const measured = variant == "start" ? measure_start(world, options)
                                      : options.order    ? measure_first_index(world, options)
                                                         : measure(world, options, variant);
                if (world.is_root()) {
                    measure::print(std::cout, measured, options.json);
                    std::cout << std::flush;
                }
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
