#include "app/command.hpp"
#include "base/text.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "measure/loader_trial.hpp"

#include <algorithm>
#include <iostream>
#include <optional>

#include "agreed_words.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

struct BenchLoaderTold {
    measure::LoaderTrial trial;
    std::string kind = "small";
    std::string variant;    ///< empty: all that there are
    std::string shuffle;    ///< empty: as the kind has it
    std::int64_t batch = 0; ///< 0: as the kind has it
    bool json = false;
};

Options bench_loader_options(BenchLoaderTold& told) {
    auto& trial = told.trial;
    return {
        .command = "lockstep bench loader",
        .about =
            "Measures how fast each rank's loader reads an epoch from files in the page cache. In "
            "the output, memory_bytes is the peak memory use of a rank's loader, and allowed_bytes "
            "is the limit of this memory: the size of the prefetched batches plus 64 MiB.",
        .rows = {
            option::text(
                "--kind small|large|deflate|shards|order",
                "small: reading 60,000 samples of 784 bytes; large: reading samples of 4 MiB; "
                "deflate: reading compressed chunks; shards: reading 1,000 files; order: finding "
                "the first sample of an epoch of 10^12 samples, without files",
                told.kind),
            option::text("--files FILES", "read these files instead of the data of --kind",
                         trial.files.files),
            option::text("--inputs NAMES", "input datasets in FILES", trial.files.inputs),
            option::text("--targets NAMES", "target datasets in FILES", trial.files.targets),
            option::flag("--sample-per-file", "read each file of FILES as one sample",
                         trial.files.sample_per_file),
            option::whole("--sequence N", "tokens per sample, as in data.sequence",
                          trial.files.sequence, {.min = 0}),
            option::text("--variant loader|memory|baseline|start",
                         "loader: as in training; memory: with data.cache = memory; start: the "
                         "time from opening the files to the first batch on every rank; baseline: "
                         "only the work that no loader can avoid (small: threads copy and convert "
                         "from an array; large: one thread reads the whole file; deflate: threads "
                         "decompress); default: all variants of the kind",
                         told.variant),
            option::one_of("--shuffle", {"full", "block", "none"},
                           "order of the samples in the epoch; with --files, the default is full",
                           told.shuffle),
            option::whole("--batch N", "samples per batch; with --files, the default is 32",
                          told.batch),
            option::whole("--workers N", "loader threads per rank", trial.workers),
            option::whole("--repeats N", "repetitions", trial.repeats),
            option::path("--directory DIR",
                         "directory for the temporary files that --kind needs; default: the "
                         "system's temporary directory",
                         trial.directory),
            option::flag("--json", "print one line of JSON per result", told.json)}};
}

/// What is to be measured, and in which ways.
std::vector<std::string> settle(BenchLoaderTold& told) {
    auto& trial = told.trial;
    trial.order = told.kind == "order";
    if (trial.directory.empty()) {
        trial.directory = std::filesystem::temp_directory_path();
    }
    if (trial.files.files.empty() && !trial.order) {
        trial.generated = measure::generated_set(told.kind);
        trial.shuffle = trial.generated->shuffle;
        trial.batch = trial.generated->batch;
    }
    trial.shuffle = told.shuffle.empty() ? trial.shuffle : told.shuffle;
    trial.batch = told.batch > 0 ? told.batch : trial.batch;
    auto const variants = measure::variants_of(trial);
    if (told.variant.empty()) {
        return variants;
    }
    if (std::find(variants.begin(), variants.end(), told.variant) == variants.end()) {
        throw Error(ExitCode::usage, {concat("--variant ", told.variant), "there is no such value",
                                      concat("Valid values: ", joined(variants, ", "))});
    }
    return {told.variant};
}

} // namespace

ExitCode bench_loader_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            BenchLoaderTold told;
            std::vector<std::string> variants;
            comm::agree(world, "reading the command line", [&] {
                bench_loader_options(told).parse(invocation.arguments);
                variants = settle(told);
            });
            std::optional<measure::TrialFile> file;
            if (told.trial.generated) {
                file.emplace(world, told.trial);
            }
            for (auto const& variant : variants) {
                auto const measured = measure::measure_loader(world, told.trial, variant);
                if (world.is_root()) {
                    measure::print(std::cout, measured, told.json);
                    std::cout << std::flush;
                }
            }
            return ExitCode::ok;
        });
}

std::string bench_loader_help(HelpWords const&) {
    return help_of(bench_loader_options);
}

} // namespace lockstep::app
