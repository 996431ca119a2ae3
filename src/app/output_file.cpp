#include "output_file.hpp"

#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/step_name.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::app {

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

void require_other_file(std::filesystem::path const& output, std::filesystem::path const& input) {
    bool const resumed = checkpoint::step_of_name(output.filename().string()).has_value();
    std::error_code none; // no file to be equivalent to
    if (resumed || std::filesystem::equivalent(output, input, none)) {
        throw Error(ExitCode::cannot_create,
                    {concat(output.string(), " cannot be written"),
                     resumed ? "only the checkpoints of runs have such names"
                             : "it is the file that is read",
                     "Name another file"});
    }
}

} // namespace lockstep::app
