#include "import/source.hpp"

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <sys/stat.h>

namespace lockstep::import {

std::string stamp(std::filesystem::path const& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        throw system_error(concat("cannot open ", path.string()), errno,
                           "Correct the list of files to import");
    }
    auto const bytes = S_ISDIR(info.st_mode) ? 0 : info.st_size;
    return concat(path.string(), " ", bytes, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec,
                  "\n");
}

void require_stored(std::string const& name, std::string const& which) {
    static_cast<void>(decoded(name, which));
    if (name.find('\0') != name.npos) {
        throw Error(ExitCode::data, {which, "it has a zero byte, at which other programs end it",
                                     "Remove zero bytes from the names"});
    }
}

std::string ImportSource::verify(std::uint64_t, std::uint64_t) const {
    return {};
}

std::string ImportSource::origin(std::int64_t item) const {
    return name(item);
}
std::int64_t ImportSource::label(std::int64_t) const {
    return -1;
}
std::string ImportSource::group(std::int64_t item) const {
    return name(item);
}
std::string ImportSource::set(std::int64_t) const {
    return {};
}

} // namespace lockstep::import
