#include "output_file.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::app {

void require_free(std::filesystem::path const& output, bool overwrite) {
    if (!overwrite && std::filesystem::exists(std::filesystem::symlink_status(output))) {
        throw Error(ExitCode::cannot_create,
                    {concat(output.string(), " already exists"), "it would be overwritten",
                     "Name another file, or add --overwrite"});
    }
}

} // namespace lockstep::app
