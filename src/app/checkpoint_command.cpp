#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/escaped.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "checkpoint/content.hpp"
#include "checkpoint/diff.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/store.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "measure/run_difference.hpp"

#include <iostream>

#include "checkpoint_files.hpp"
#include "command_group.hpp"
#include "commands.hpp"

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
        throw Error(
            ExitCode::no_input,
            {concat("no checkpoint in ", path.string()),
             concat((path / "checkpoints").string(), " does not exist or holds no checkpoint"),
             "Name a checkpoint file, or the directory of a run that has checkpoints"});
    }
    if (!all) {
        files.resize(1);
        require_own_choice(files.front(), path / "checkpoints");
    } else if (std::filesystem::exists(path / "best.h5")) {
        files.push_back(path / "best.h5");
    }
    return files;
}

namespace {

struct PruneTold {
    int keep = 0;
};

Options checkpoint_verify_options(NothingTold&) {
    return {
        .command = "lockstep checkpoint verify",
        .positions = {"FILE|RUN", 1, 1},
        .about =
            "Checks that the bytes of a checkpoint, or of all checkpoints of a run, have "
            "not changed since they were written. Exits with 65 if a byte has changed, and with "
            "66 if other users have put files there, which are not verified."};
}

Options checkpoint_prune_options(PruneTold& told) {
    return {.command = "lockstep checkpoint prune",
            .positions = {"RUN", 1, 1},
            .about = "Removes all but the N newest checkpoints of a run. The newest intact "
                     "checkpoint is never removed.",
            .rows = {option::required(
                option::whole("--keep N", "number of checkpoints to keep", told.keep))}};
}

Options checkpoint_diff_options(NothingTold&) {
    return {.command = "lockstep checkpoint diff",
            .positions = {"A B", 2, 2},
            .about =
                "Compares the states of two checkpoints bit by bit. Exits with 0 if the states are "
                "identical, 1 if they are different. For two runs, the newest checkpoint of each "
                "run is compared. If the runs recorded hashes of the weights "
                "(monitor.weight-hash), the step at which the runs diverged is printed, too."};
}

/// What is wrong with a file that was looked at byte by byte; empty: nothing.
std::vector<std::string> faults_of(std::filesystem::path const& path) {
    if (checkpoint::is_safetensors(path)) {
        throw Error(ExitCode::usage,
                    {concat("cannot verify ", path.string()), "safetensors files have no checksums",
                     "Verify the checkpoint or the best.h5 from which this file was exported"});
    }
    auto const file = checkpoint::VerifiedFile::unchecked(path);
    std::vector<std::string> faults;
    for (auto const& damage : checkpoint::verify(path)) {
        faults.push_back(
            concat("bytes ", damage.first_byte, " to ", damage.last_byte, ": ", damage.what));
    }
    if (faults.empty()) { // then it is what its name says
        if (checkpoint::content_of(File::open_read(path)) == checkpoint::Content::outputs) {
            static_cast<void>(checkpoint::Reader(file));
        } else {
            checkpoint::open_weights(file);
        }
    }
    return faults;
}

/// Why a file of a run is not looked at: somebody else has put it there.
std::string stranger_of(std::filesystem::path const& file, std::filesystem::path const& run) {
    auto const within = file.parent_path();
    return within == run / "checkpoints" ? third_person(file, within) : third_person(file);
}

ExitCode verify(std::filesystem::path const& path) {
    bool const one = !std::filesystem::is_directory(path);
    bool whole = true;
    bool all = true;
    for (auto const& file : files_of(path, true)) {
        if (auto const stranger = one ? std::string() : stranger_of(file, path);
            !stranger.empty()) {
            std::cout << file.string() << ": not verified: " << stranger << "\n";
            all = false;
            continue;
        }
        std::vector<std::string> faults;
        try {
            faults = faults_of(file);
        } catch (Error const& error) {
            if (one) {
                throw;
            }
            if (!std::filesystem::exists(std::filesystem::symlink_status(file))) {
                continue; // the run has removed it meanwhile
            }
            faults = {error.text().why};
        }
        for (auto const& fault : faults) {
            std::cout << file.string() << ": " << fault << "\n";
        }
        std::cout << file.string() << (faults.empty() ? ": all bytes are intact\n" : ": damaged\n");
        whole = whole && faults.empty();
    }
    return !whole ? ExitCode::data : all ? ExitCode::ok : ExitCode::no_input;
}

ExitCode diff(std::filesystem::path const& a, std::filesystem::path const& b) {
    auto const comparison =
        checkpoint::diff(files_of(a, false).front(), files_of(b, false).front());
    for (auto const& difference : comparison.state) {
        std::cout << escaped_line(concat(difference.where, ": ", difference.what)) << "\n";
    }
    if (!comparison.records.empty()) {
        std::cout << "differing records (not part of the state):\n";
        for (auto const& difference : comparison.records) {
            std::cout << "  " << escaped_line(concat(difference.where, ": ", difference.what))
                      << "\n";
        }
    }
    for (auto const& line : measure::where_runs_part(a, b)) {
        std::cout << line << "\n";
    }
    std::cout << (comparison.identical() ? "identical state\n" : "different state\n");
    return comparison.identical() ? ExitCode::ok : ExitCode::different;
}

ExitCode prune(std::filesystem::path const& run, int keep) {
    if (!std::filesystem::is_directory(run)) {
        throw Error(ExitCode::no_input,
                    {concat("cannot prune ", run.string()), "it is not a directory",
                     "Name the directory of a run; its checkpoints are in the folder checkpoints"});
    }
    files_of(run, true); // says where there is none
    for (auto const& path : checkpoint::Store(run / "checkpoints", keep).prune(keep)) {
        std::cout << "removed " << path.string() << "\n";
    }
    return ExitCode::ok;
}

ExitCode verify_command(Invocation const& invocation) {
    return verify(positions_of(checkpoint_verify_options, invocation)[0]);
}

ExitCode diff_command(Invocation const& invocation) {
    auto const words = positions_of(checkpoint_diff_options, invocation);
    return diff(words[0], words[1]);
}

ExitCode prune_command(Invocation const& invocation) {
    PruneTold told;
    auto const words = checkpoint_prune_options(told).parse(invocation.arguments);
    return prune(words.positions[0], told.keep);
}

std::string verify_help(HelpWords const&) {
    return help_of(checkpoint_verify_options);
}

std::string prune_help(HelpWords const&) {
    return help_of(checkpoint_prune_options);
}

std::string diff_help(HelpWords const&) {
    return help_of(checkpoint_diff_options);
}

CommandGroup checkpoint_group() {
    return {.name = "checkpoint",
            .commands = {{"info", checkpoint_info_command, checkpoint_info_help},
                         {"verify", verify_command, verify_help},
                         {"prune", prune_command, prune_help},
                         {"export", checkpoint_export_command, checkpoint_export_help},
                         {"quantise", checkpoint_quantise_command, checkpoint_quantise_help},
                         {"diff", diff_command, diff_help}}};
}

} // namespace

ExitCode checkpoint_command(Invocation const& invocation) {
    return run_one_of(checkpoint_group(), invocation);
}

std::string checkpoint_help(HelpWords const& words) {
    return help_of(checkpoint_group(), words);
}

} // namespace lockstep::app
