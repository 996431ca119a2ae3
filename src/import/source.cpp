#include "import/source.hpp"

#include "base/text.hpp"
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
