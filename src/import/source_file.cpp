#include "source_file.hpp"

#include "base/file_kind.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
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

void require_text(std::filesystem::path const& path, std::string_view beginning) {
    constexpr std::size_t looked_at = 16 << 10;
    auto const head = beginning.substr(0, looked_at);
    bool const utf16 = head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff");
    bool const text = !utf16 && std::ranges::none_of(head, [](char letter) {
        return static_cast<unsigned char>(letter) < ' ' && letter != '\n' && letter != '\r' &&
               letter != '\t' && letter != '\f' && letter != '\v';
    });
    if (text) {
        return;
    }
    auto const kind = is_hdf5(path) ? FileKind{"an HDF5 file",
                                               "Import it with lockstep data import hdf5, or name "
                                               "a text",
                                               "", ""}
                                    : kind_of_file(path);
    if (!kind.name.empty()) {
        throw Error(ExitCode::data,
                    {path.string(), concat("it is ", kind.name, ", not a text in UTF-8"),
                     kind.data.empty() ? "Convert it to a text, or name another file" : kind.data});
    }
}

} // namespace lockstep::import
