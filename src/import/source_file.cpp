#include "source_file.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::import {

void require_file(std::filesystem::path const& path) {
    static_cast<void>(File::open_read(path));
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
