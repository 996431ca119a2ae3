#include "source_file.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <unistd.h>

namespace lockstep::import {

void require_file(std::filesystem::path const& path) {
    namespace fs = std::filesystem;
    std::error_code failure;
    auto const type = fs::status(path, failure).type();
    auto const refuse = [&](ExitCode code, std::string const& why) {
        throw Error(code, {concat("cannot open ", path.string()), why,
                           "Correct its name, or replace the file"});
    };
    switch (type) {
    case fs::file_type::regular:
        if (::access(path.c_str(), R_OK) != 0) {
            refuse(ExitCode::no_input, std::error_code(errno, std::generic_category()).message());
        }
        return;
    case fs::file_type::not_found:
        refuse(ExitCode::no_input, fs::is_symlink(path, failure)
                                       ? "it is a link to a file that does not exist"
                                       : "there is no such file");
        return;
    case fs::file_type::directory:
        refuse(ExitCode::no_input, "it is a directory");
        return;
    case fs::file_type::none:
        refuse(ExitCode::no_input, failure.message());
        return;
    default:
        refuse(ExitCode::data, "it is a pipe, a socket or a device, not a file");
    }
}

} // namespace lockstep::import
