#include "output_file.hpp"

#include "base/list.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/step_name.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>
#include <fnmatch.h>
#include <iterator>
#include <vector>

namespace lockstep::app {

namespace {

/// The output, if it matches the pattern. No directory is read.
std::filesystem::path matched(std::string const& pattern, std::filesystem::path const& output) {
    std::error_code none; // as where the working directory is gone
    auto const whole = std::filesystem::absolute(pattern, none).lexically_normal();
    for (auto const& name : {std::filesystem::absolute(output, none).lexically_normal(),
                             std::filesystem::weakly_canonical(output, none)}) {
        if (::fnmatch(whole.c_str(), name.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0) {
            return output;
        }
    }
    return {};
}

/// The files of a set. One that cannot be found is none.
std::vector<std::filesystem::path> files_of(std::string const& set, DeckFrom from,
                                            std::filesystem::path const& output) {
    try {
        if (from == DeckFrom::user) {
            return data::expand_files(set);
        }
        std::vector<std::filesystem::path> files;
        for (auto const& [name, quoted] : list_entries(set)) {
            files.emplace_back(name);
            if (!quoted) {
                files.push_back(matched(name, output));
            }
        }
        return files;
    } catch (Error const&) { // whoever reads it says so
        return {};
    }
}

/// The files that a deck names for data, models and teachers.
std::vector<std::filesystem::path> files_named_by(config::Deck const& deck, DeckFrom from,
                                                  std::filesystem::path const& output) {
    std::vector<std::filesystem::path> files{deck.model.weights, deck.distill.teacher,
                                             deck.distill.teacher_deck, deck.distill.outputs};
    for (auto const& set : {deck.data.train, deck.data.validation, deck.data.test}) {
        std::ranges::move(files_of(set, from, output), std::back_inserter(files));
    }
    for (auto const& [key, value] : deck.model.own) {
        files.emplace_back(value); // such as model.file
    }
    return files;
}

Error not_written(std::filesystem::path const& output, std::string const& why) {
    return {ExitCode::cannot_create,
            {concat(output.string(), " cannot be written"), why, "Name another file"}};
}

} // namespace

void require_free(std::filesystem::path const& output, bool overwrite) {
    if (output.empty()) {
        throw Error(ExitCode::usage, {"the name of the output file is empty",
                                      "nothing can be written", "Name a file"});
    }
    if (!overwrite && std::filesystem::exists(std::filesystem::symlink_status(output))) {
        throw Error(ExitCode::cannot_create,
                    {concat(output.string(), " already exists"), "it would be overwritten",
                     "Name another file, or add --overwrite"});
    }
    require_replaceable(output);
}

void require_directory_of(std::filesystem::path const& output) {
    auto const directory = std::filesystem::absolute(output).parent_path();
    if (!std::filesystem::is_directory(directory)) {
        throw Error(ExitCode::cannot_create,
                    {concat("cannot create ", output.string()),
                     concat("there is no directory ", directory.string()),
                     "Create this directory, or name a file in another directory"});
    }
}

void require_other_file(std::filesystem::path const& output, std::filesystem::path const& input) {
    bool const resumed = checkpoint::step_of_name(output.filename().string()).has_value();
    bool const best = output.filename() == "best.h5" &&
                      std::filesystem::is_directory(output.parent_path() / "checkpoints");
    std::error_code none; // no file to be equivalent to
    if (resumed || best || std::filesystem::equivalent(output, input, none)) {
        throw not_written(output, resumed ? "only the checkpoints of runs have such names"
                                  : best  ? "it is the best model of a run"
                                          : "it is the file that is read");
    }
}

void require_not_named(std::filesystem::path const& output, config::Deck const& deck,
                       DeckFrom from) {
    for (auto const& file : files_named_by(deck, from, output)) {
        std::error_code none;
        if (std::filesystem::equivalent(output, file, none)) {
            throw not_written(output, "the deck names this file for data, models or teachers");
        }
    }
}

} // namespace lockstep::app
