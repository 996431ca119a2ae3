#include "base/input_error.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <system_error>

namespace lockstep {

Error input_error(std::filesystem::path const& path, int error_number) {
    auto const what = concat("cannot open ", path.string());
    std::error_code unknown;
    if (error_number == ENOENT && std::filesystem::is_symlink(path, unknown)) {
        return {ExitCode::no_input,
                {what, "it is a link to a file that does not exist",
                 "Put that file back, or name another file"}};
    }
    auto const error = system_error(what, error_number, "Check the path and its permissions");
    return error.code() == ExitCode::cannot_create ? Error(ExitCode::no_input, error.text())
                                                   : error;
}

} // namespace lockstep
