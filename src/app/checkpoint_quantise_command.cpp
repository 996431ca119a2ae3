#include "app/command.hpp"
#include "base/text.hpp"

#include "checkpoint_files.hpp"
#include "commands.hpp"
#include "output_file.hpp"
#include "train_side_options.hpp"

namespace lockstep::app {

ExitCode checkpoint_quantise_command(Invocation const& invocation) {
    train::QuantiseOptions told;
    auto words = quantise_options(told).parse(invocation.arguments);
    words.positions[0] = files_of(words.positions[0], false).front().string();
    require_free(words.positions[1], told.overwrite);
    require_other_file(words.positions[1], words.positions[0]);
    auto arguments = words.all();
    arguments.insert(arguments.end(), {"--samples", std::to_string(told.samples), "--method",
                                       told.method, "--overwrite"}); // it is free, or may be
    return train_side_command("checkpoint quantise",
                              {std::move(arguments), invocation.argc, invocation.argv});
}

std::string checkpoint_quantise_help(HelpWords const&) {
    return help_of(quantise_options);
}

} // namespace lockstep::app
