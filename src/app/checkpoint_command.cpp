#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "checkpoint/diff.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/store.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck_source.hpp"

#include <iostream>

#include "checkpoint_files.hpp"
#include "command_help.hpp"
#include "run_difference.hpp"

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

constexpr char const* checkpoint_help =
    R"(lockstep checkpoint info FILE|RUN
    What is in a checkpoint, a best.h5, or the newest checkpoint of a run's directory.
lockstep checkpoint verify FILE|RUN
    Whether every byte is as it was written; for a run, of all its checkpoints. Exit 65 if not.
lockstep checkpoint prune RUN --keep N
    Removes all but the N newest checkpoints of a run; the newest that verifies stays in any case.
lockstep checkpoint export FILE|RUN OUT [--format safetensors|torchscript|hdf5] [--overwrite]
    The model alone, as others read it: of a run that of its newest checkpoint; name RUN/best.h5 for
    the best. The format may follow from OUT's name. torchscript traces the model and needs the data
    named in its deck: --section.key VALUE changes that. --overwrite: OUT may be there.
lockstep checkpoint diff A B
    Compares two checkpoints' state bit by bit. Exit 0: identical, 1: different. Of two runs the newest
    are compared; where their records have hashes of the weights (monitor.weight-hash), the step at
    which they part is named.
)";

std::string text_of(checkpoint::Record const& record, char const* note) {
    auto const found = record.notes.find(note);
    return found == record.notes.end() ? "not known" : found->second;
}

/// A line for a thing that is known.
template <class... Parts>
void print_fact(std::string name, Parts const&... parts) {
    name.resize(12, ' ');
    std::cout << "  " << name << concat(parts...) << "\n";
}

void print_record(checkpoint::Record const& record) {
    config::DeckSource deck;
    deck.read_printed(record.deck, "the deck");
    auto const value = [&](char const* key) {
        auto const found = deck.values().find(key);
        return found == deck.values().end() || found->second.value.empty() ? std::string("none")
                                                                           : found->second.value;
    };
    auto const integer = [&](char const* name) {
        auto const found = record.integers.find(name);
        return found == record.integers.end() ? std::int64_t{-1} : found->second;
    };
    print_fact("run", value("run.name"), ", step ", count_text(integer("step")), ", ",
               integer("epoch"), integer("epoch") == 1 ? " epoch" : " epochs", " done");
    print_fact("model", value("model.name"), ", task ", value("task.kind"));
    print_fact("data", value("data.train"));
    print_fact("optimizer", value("optimizer.name"), ", learning rate ",
               value("optimizer.learning-rate"));
    print_fact("replicas", integer("replicas"), " of batch ", value("data.batch"), ", seed ",
               integer("seed"));
    if (integer("best_step") >= 0 && record.reals.contains("best")) {
        print_fact("best", text_of(record, "best_metric"), " ", fixed(record.reals.at("best"), 4),
                   " at step ", count_text(integer("best_step")));
    }
    print_fact("written", text_of(record, "time"), ", by version ", text_of(record, "version"),
               " on ", text_of(record, "ranks"),
               text_of(record, "ranks") == "1" ? " rank of " : " ranks of ",
               text_of(record, "hosts"));
    if (record.notes.contains("forced")) {
        print_fact("forced", text_of(record, "forced"));
    }
    print_fact("deck", "all of it: h5dump -d /record/deck FILE");
}

ExitCode info(std::filesystem::path const& path) {
    auto const file = checkpoint::VerifiedFile::unchecked(path);
    auto const* const kind = checkpoint::is_safetensors(path)  ? "safetensors file"
                             : checkpoint::is_model_file(path) ? "model"
                                                               : "checkpoint";
    auto const weights = checkpoint::open_weights(file);
    std::cout << path.string() << ": a " << kind << ", "
              << bytes_text(std::filesystem::file_size(path)) << "\n";
    if (!weights->record().deck.empty()) { // others' files tell nothing of a run
        print_record(weights->record());
    }
    std::uint64_t numbers = 0;
    for (auto const& entry : weights->entries()) {
        numbers += h5::elements(entry.shape);
    }
    std::cout << "  tensors     " << weights->entries().size() << " of "
              << count_text(static_cast<std::int64_t>(numbers)) << " numbers\n";
    for (auto const& entry : weights->entries()) {
        std::cout << "    " << entry.name << " " << h5::name_of(entry.type) << " "
                  << h5::shape_text(entry.shape) << "\n";
    }
    return ExitCode::ok;
}

/// What is wrong with a file that was looked at byte by byte; empty: nothing.
std::vector<std::string> faults_of(std::filesystem::path const& path) {
    if (checkpoint::is_safetensors(path)) {
        throw Error(ExitCode::usage,
                    {path.string(), "it is a safetensors file, which has no checksums",
                     "Verify the checkpoint or the best.h5 that it was exported from"});
    }
    auto const file = checkpoint::VerifiedFile::unchecked(path);
    std::vector<std::string> faults;
    for (auto const& damage : checkpoint::verify(path)) {
        faults.push_back(
            concat("bytes ", damage.first_byte, " to ", damage.last_byte, ": ", damage.what));
    }
    if (faults.empty()) {
        checkpoint::open_weights(file); // it is what its name says
    }
    return faults;
}

ExitCode verify(std::filesystem::path const& path) {
    bool const one = !std::filesystem::is_directory(path);
    bool whole = true;
    for (auto const& file : files_of(path, true)) {
        std::vector<std::string> faults;
        try {
            faults = faults_of(file);
        } catch (Error const& error) {
            if (one) {
                throw;
            }
            faults = {error.text().why};
        }
        for (auto const& fault : faults) {
            std::cout << file.string() << ": " << fault << "\n";
        }
        std::cout << file.string() << (faults.empty() ? ": every byte is right\n" : ": damaged\n");
        whole = whole && faults.empty();
    }
    return whole ? ExitCode::ok : ExitCode::data;
}

ExitCode diff(std::filesystem::path const& a, std::filesystem::path const& b) {
    auto const comparison =
        checkpoint::diff(files_of(a, false).front(), files_of(b, false).front());
    for (auto const& difference : comparison.state) {
        std::cout << difference.where << ": " << difference.what << "\n";
    }
    if (!comparison.records.empty()) {
        std::cout << "records, which do not count:\n";
        for (auto const& difference : comparison.records) {
            std::cout << "  " << difference.where << ": " << difference.what << "\n";
        }
    }
    for (auto const& line : where_runs_part(a, b)) {
        std::cout << line << "\n";
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
    bool const asked = take_flag(arguments, "--help");
    auto const action = arguments.empty() ? std::string() : arguments.front();
    if (asked || arguments.empty()) {
        auto const of_action = help_of(checkpoint_help, concat("lockstep checkpoint ", action));
        std::cout << (of_action.empty() ? checkpoint_help : of_action);
        return asked ? ExitCode::ok : ExitCode::usage;
    }
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
        return diff(arguments[0], arguments[1]);
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
        auto const keep = number_of<int>(asked);
        if (!keep || *keep < 1) {
            throw Error(ExitCode::usage,
                        {concat("--keep ", asked), "expected a whole number from 1",
                         "Write how many checkpoints are to stay, such as 3"});
        }
        expect_arguments(arguments, 1, 1, "lockstep checkpoint prune RUN --keep N");
        return prune(arguments[0], *keep);
    }
    throw Error(ExitCode::usage, {concat("lockstep checkpoint ", action),
                                  "there are info, verify, prune, export and diff",
                                  "See lockstep checkpoint --help"});
}

} // namespace lockstep::app
