#include "suspect_steps.hpp"

#include "base/file.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <string>

namespace lockstep::train {

namespace {

std::filesystem::path note_in(std::filesystem::path const& checkpoints) {
    return checkpoints / "suspect-after";
}

} // namespace

void note_suspect_steps(std::filesystem::path const& checkpoints, std::int64_t after) {
    auto const before = suspect_steps(checkpoints).value_or(after);
    write_text_durably(note_in(checkpoints), concat(std::min(before, after), "\n"));
}

std::optional<std::int64_t> suspect_steps(std::filesystem::path const& checkpoints) {
    auto const file = note_in(checkpoints);
    if (!std::filesystem::exists(file) || !third_person(file).empty()) {
        return std::nullopt;
    }
    auto const step = number_of<std::int64_t>(trimmed(read_text(file)));
    if (!step) {
        throw Error(ExitCode::data, {file.string(), "this file should hold the number of a step",
                                     "Write the last step into it whose values are right"});
    }
    return step;
}

void forget_suspect_steps(std::filesystem::path const& checkpoints) {
    std::filesystem::remove(note_in(checkpoints));
}

} // namespace lockstep::train
