#include "lockstep/base/text.hpp"
#include "lockstep/checkpoint/diff.hpp"
#include "lockstep/checkpoint/model_file.hpp"
#include "lockstep/checkpoint/reader.hpp"
#include "lockstep/checkpoint/store.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <iostream>

#include "checkpoint_files.hpp"
#include "command.hpp"
#include "measurement.hpp"

namespace lockstep::app {

std::vector<std::filesystem::path> files_of(std::filesystem::path const& path, bool all) {
    if (!std::filesystem::is_directory(path)) {
        return {path};
    }
    std::vector<std::filesystem::path> files;
    for (auto const& entry : checkpoint::Store(path / "checkpoints", 1).list()) {
        files.push_back(entry.path);
    }
    if (files.empty()) {
        throw Error(ExitCode::no_input,
                    {concat("no checkpoint in ", path.string()),
                     "its directory checkpoints holds none", "Name a run's directory or a file"});
    }
    if (!all) {
        files.resize(1);
    } else if (std::filesystem::exists(path / "best.h5")) {
        files.push_back(path / "best.h5");
    }
    return files;
}

namespace {

constexpr char const* help =
    R"(lockstep checkpoint info FILE|RUN
    What is in a checkpoint, a best.h5, or the newest checkpoint of a run's directory.
lockstep checkpoint verify FILE|RUN
    Whether every byte is as it was written; for a run, of all its checkpoints. Exit 65 if not.
lockstep checkpoint prune RUN --keep N
    Removes all but the N newest checkpoints of a run; the newest that verifies stays in any case.
lockstep checkpoint export FILE|RUN OUT [--format safetensors|torchscript|hdf5]
    The model alone, as others read it; the format may follow from OUT's name. torchscript traces the
    model and needs the data named in its deck: --section.key VALUE changes that.
lockstep checkpoint diff A B
    Compares two checkpoints' state bit by bit. Exit 0: identical, 1: different.
)";

std::string shape_text(h5::Shape const& shape) {
    std::vector<std::string> parts;
    for (auto const extent : shape) {
        parts.push_back(std::to_string(extent));
    }
    return concat("[", joined(parts, ", "), "]");
}

void print_record(checkpoint::Record const& record) {
    for (auto const& [name, value] : record.integers) {
        std::cout << "  " << name << " = " << value << "\n";
    }
    for (auto const& [name, value] : record.reals) {
        std::cout << "  " << name << " = " << value << "\n";
    }
    for (auto const& [name, value] : record.notes) {
        std::cout << "  " << name << " = " << value << "\n";
    }
}

ExitCode info(std::filesystem::path const& file) {
    if (checkpoint::is_model_file(file)) {
        checkpoint::ModelFile const model(file);
        std::cout << file.string() << ": a model\n";
        print_record(model.record());
        for (auto const& entry : model.entries()) {
            std::cout << "  " << entry.path << " " << h5::name_of(entry.type) << " "
                      << shape_text(entry.shape) << "\n";
        }
        return ExitCode::ok;
    }
    checkpoint::Reader const reader(file);
    std::cout << file.string() << ": a checkpoint, " << bytes_text(reader.bytes()) << "\n";
    print_record(reader.record());
    for (auto const& array : reader.arrays()) {
        std::cout << "  " << array.name << " " << h5::name_of(array.type) << " [" << array.elements
                  << "]\n";
    }
    for (auto const& view : reader.views()) {
        std::cout << "  " << view.path << " " << shape_text(view.shape) << "\n";
    }
    return ExitCode::ok;
}

ExitCode verify(std::filesystem::path const& path) {
    bool whole = true;
    for (auto const& file : files_of(path, true)) {
        auto const damages = checkpoint::verify(file);
        for (auto const& damage : damages) {
            std::cout << file.string() << ": bytes " << damage.first_byte << " to "
                      << damage.last_byte << ": " << damage.what << "\n";
        }
        std::cout << file.string() << (damages.empty() ? ": every byte is right\n" : ": damaged\n");
        whole = whole && damages.empty();
    }
    return whole ? ExitCode::ok : ExitCode::data;
}

ExitCode diff(std::filesystem::path const& a, std::filesystem::path const& b) {
    auto const comparison = checkpoint::diff(a, b);
    for (auto const& difference : comparison.state) {
        std::cout << difference.where << ": " << difference.what << "\n";
    }
    if (!comparison.records.empty()) {
        std::cout << "records, which do not count:\n";
        for (auto const& difference : comparison.records) {
            std::cout << "  " << difference.where << ": " << difference.what << "\n";
        }
    }
    std::cout << (comparison.identical() ? "identical state\n" : "different state\n");
    return comparison.identical() ? ExitCode::ok : ExitCode::different;
}

ExitCode prune(std::filesystem::path const& run, int keep) {
    if (!std::filesystem::is_directory(run)) {
        throw Error(ExitCode::no_input, {concat(run.string(), " is no run's directory"),
                                         "its checkpoints would be pruned", "Name one"});
    }
    files_of(run, false); // says where there is none
    for (auto const& path : checkpoint::Store(run / "checkpoints", keep).prune(keep)) {
        std::cout << "removed " << path.string() << "\n";
    }
    return ExitCode::ok;
}

} // namespace

ExitCode checkpoint_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (arguments.empty() || take_flag(arguments, "--help")) {
        std::cout << help;
        return invocation.arguments.empty() ? ExitCode::usage : ExitCode::ok;
    }
    auto const action = arguments.front();
    arguments.erase(arguments.begin());
    if (action == "info") {
        expect_arguments(arguments, 1, 1, "lockstep checkpoint info FILE|RUN");
        return info(files_of(arguments[0], false).front());
    }
    if (action == "verify") {
        expect_arguments(arguments, 1, 1, "lockstep checkpoint verify FILE|RUN");
        return verify(arguments[0]);
    }
    if (action == "diff") {
        expect_arguments(arguments, 2, 2, "lockstep checkpoint diff A B");
        return diff(files_of(arguments[0], false).front(), files_of(arguments[1], false).front());
    }
    if (action == "export") {
        return checkpoint_export_command({arguments, invocation.argc, invocation.argv});
    }
    if (action == "prune") {
        auto const asked = take_option(arguments, "--keep", "");
        if (asked.empty()) {
            throw Error(ExitCode::usage, {"how many checkpoints are to stay is not said",
                                          "the others are removed", "Add --keep N"});
        }
        auto const keep = whole_number("--keep", asked);
        expect_arguments(arguments, 1, 1, "lockstep checkpoint prune RUN --keep N");
        return prune(arguments[0], static_cast<int>(keep));
    }
    throw Error(ExitCode::usage, {concat("lockstep checkpoint ", action),
                                  "there are info, verify, prune, export and diff",
                                  "See lockstep checkpoint --help"});
}

} // namespace lockstep::app
