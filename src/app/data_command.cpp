#include "lockstep/base/signals.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/data/import.hpp"
#include "lockstep/data/inspect.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/monitor/progress_bar.hpp"

#include <iostream>

#include "command.hpp"

namespace lockstep::app {

namespace {

constexpr char const* import_usage =
    "lockstep data import idx|hdf5 SOURCE OUT [--classes A,B,C] [--inputs NAME] [--targets NAME]";

constexpr char const* help =
    R"(lockstep data import idx SOURCE OUT [--classes A,B,C]
    SOURCE: a directory with train-images-idx3-ubyte[.gz], train-labels-idx1-ubyte[.gz] and the
    t10k- pair; OUT: a directory, which gets train.h5 and test.h5. Or SOURCE: IMAGES,LABELS and
    OUT: a file.
lockstep data import hdf5 SOURCE OUT [--inputs NAME] [--targets NAME] [--classes A,B,C]
    Any HDF5 file with one entry a sample, chunked or compressed too, written in Lockstep's form.
lockstep data info FILE...
    What is in it.
lockstep data verify FILE...
    Recomputes all checksums; exit 65 when a block has changed.
)";

/// Thrown out of an import, this leaves no half file behind.
void stop_if_asked(SignalRequests const& signals, std::filesystem::path const& path) {
    if (signals.pending() != 0) {
        throw Error(
            ExitCode::interrupted,
            {concat(signal_name(signals.pending()), " while ", path.string(), " was written"),
             "the import was ended, and no part of this file is left", "Import again"});
    }
}

void import_on_root(std::vector<std::string> arguments, SignalRequests const& signals) {
    auto const classes = split(take_option(arguments, "--classes", ""), ',');
    auto const inputs = take_option(arguments, "--inputs", "inputs");
    auto const targets = take_option(arguments, "--targets", "targets");
    expect_arguments(arguments, 3, 3, import_usage);
    monitor::ProgressBar bar(monitor::on_terminal());
    auto const progress = [&](std::filesystem::path const& path, std::int64_t done,
                              std::int64_t all) {
        stop_if_asked(signals, path);
        bar.draw(done, all, path.string());
    };
    std::vector<data::ImportedFile> files;
    if (arguments[0] == "idx") {
        files = data::import_idx({arguments[1], arguments[2], classes}, progress);
    } else if (arguments[0] == "hdf5") {
        files = {
            data::import_hdf5({arguments[1], arguments[2], inputs, targets, classes}, progress)};
    } else {
        throw Error(ExitCode::usage, {concat("lockstep data import ", arguments[0]),
                                      "there are idx and hdf5", concat("Usage: ", import_usage)});
    }
    bar.clear();
    for (auto const& file : files) {
        std::cout << file.path.string() << ": " << count_text(file.samples) << " samples, "
                  << bytes_text(file.bytes) << "\n";
    }
}

ExitCode import_command(Invocation const& invocation, std::vector<std::string> const& arguments) {
    SignalRequests const signals;
    return monitor::run_collectively(invocation.argc, invocation.argv,
                                     [&](monitor::CommandContext& context) {
                                         comm::agree(context.world, "importing data", [&] {
                                             if (context.world.is_root()) {
                                                 import_on_root(arguments, signals);
                                             }
                                         });
                                         return ExitCode::ok;
                                     });
}

void print(data::DataInfo const& info) {
    std::cout << info.path.string() << ": " << bytes_text(info.bytes) << ", "
              << (info.ours ? "a Lockstep data set" : "written by others")
              << (info.checksums ? ", with checksums" : ", without checksums") << "\n  "
              << count_text(info.samples) << " samples of [";
    for (std::size_t i = 0; i < info.sample_shape.size(); ++i) {
        std::cout << (i == 0 ? "" : ", ") << info.sample_shape[i];
    }
    std::cout << "] " << h5::name_of(info.input_type) << "\n";
    for (std::size_t i = 0; i < info.mean.size(); ++i) {
        std::cout << "  mean " << fixed(info.mean[i], 4) << ", standard deviation "
                  << fixed(info.std[i], 4) << "\n";
    }
    for (std::size_t i = 0; i < info.class_names.size(); ++i) {
        std::cout << "  class " << i << " " << info.class_names[i] << ": "
                  << count_text(info.class_counts[i]) << "\n";
    }
}

ExitCode verify_files(std::vector<std::string> const& files) {
    bool whole = true;
    for (auto const& file : files) {
        auto const damage = data::verify(file);
        for (auto const& block : damage) {
            std::cout << file << ": " << block.dataset << " has changed in bytes "
                      << block.first_byte << " to " << block.last_byte << "\n";
        }
        std::cout << file << (damage.empty() ? ": every checksum is right\n" : ": damaged\n");
        whole = whole && damage.empty();
    }
    return whole ? ExitCode::ok : ExitCode::data;
}

} // namespace

ExitCode data_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (arguments.empty() || take_flag(arguments, "--help")) {
        std::cout << help;
        return invocation.arguments.empty() ? ExitCode::usage : ExitCode::ok;
    }
    auto const action = arguments.front();
    arguments.erase(arguments.begin());
    if (action == "import") {
        return import_command(invocation, arguments);
    }
    if (action == "info" || action == "verify") {
        expect_arguments(arguments, 1, 100000, concat("lockstep data ", action, " FILE..."));
        if (action == "verify") {
            return verify_files(arguments);
        }
        for (auto const& file : arguments) {
            print(data::describe(file));
        }
        return ExitCode::ok;
    }
    throw Error(ExitCode::usage, {concat("lockstep data ", action),
                                  "there are import, info and verify", "See lockstep data --help"});
}

} // namespace lockstep::app
