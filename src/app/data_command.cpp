#include "lockstep/base/text.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/data/import.hpp"
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
lockstep data info FILE... [--inputs NAMES] [--targets NAMES]
    What is in it.
lockstep data verify FILE... [--inputs NAMES] [--targets NAMES]
    Recomputes all checksums, reads every sample, and counts values that are not finite; exit 65
    when there are any, or when a block has changed. Files of others have no checksums.
)";

void import_on_root(std::vector<std::string> arguments) {
    auto const classes = split(take_option(arguments, "--classes", ""), ',');
    auto const inputs = take_option(arguments, "--inputs", "inputs");
    auto const targets = take_option(arguments, "--targets", "targets");
    expect_arguments(arguments, 3, 3, import_usage);
    monitor::ProgressBar bar(monitor::on_terminal());
    auto const progress = [&](std::filesystem::path const& path, std::int64_t done,
                              std::int64_t all) { bar.draw(done, all, path.string()); };
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
    return monitor::run_collectively(invocation.argc, invocation.argv,
                                     [&](monitor::CommandContext& context) {
                                         comm::agree(context.world, "importing data", [&] {
                                             if (context.world.is_root()) {
                                                 import_on_root(arguments);
                                             }
                                         });
                                         return ExitCode::ok;
                                     });
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
        return action == "info" ? data_info_command(arguments) : data_verify_command(arguments);
    }
    throw Error(ExitCode::usage, {concat("lockstep data ", action),
                                  "there are import, info and verify", "See lockstep data --help"});
}

} // namespace lockstep::app
