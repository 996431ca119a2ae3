#include "app/command.hpp"
#include "base/text.hpp"
#include "data/augment/change.hpp"

#include <algorithm>
#include <iostream>

#include "commands.hpp"

namespace lockstep::app {

namespace {

Options data_augment_options(NothingTold&) {
    return {.command = "lockstep data augment",
            .positions = {"[NAME]", 0, 1},
            .about = "Lists the entries of data.augment, the probability of each, and the samples "
                     "that it fits."};
}

void print_kind(data::ChangeKind const& kind) {
    std::cout << kind.form() << ": " << kind.meaning << "\n    probability "
              << significant(kind.probability, 3) << ", for " << kind.samples << "\n";
}

} // namespace

ExitCode data_augment_command(Invocation const& invocation) {
    auto const names = positions_of(data_augment_options, invocation);
    auto const kinds = data::change_kinds();
    if (names.empty()) {
        std::ranges::for_each(kinds, print_kind);
        return ExitCode::ok;
    }
    auto const found = std::ranges::find(kinds, names.front(), &data::ChangeKind::name);
    if (found == kinds.end()) {
        throw Error(ExitCode::usage,
                    {concat("data.augment has no entry ", names.front()), "no entry has this name",
                     "lockstep data augment lists them"});
    }
    print_kind(*found);
    return ExitCode::ok;
}

std::string data_augment_help(HelpWords const&) {
    return help_of(data_augment_options);
}

} // namespace lockstep::app
