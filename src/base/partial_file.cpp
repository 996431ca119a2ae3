#include "base/partial_file.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <system_error>

namespace lockstep {

PartialFile::~PartialFile() {
    if (!renamed_) {
        std::error_code ignored; // the failure that brought us here is the one to tell
        std::filesystem::remove(path_, ignored);
    }
}

void require_replaceable(std::filesystem::path const& name) {
    auto const there = std::filesystem::symlink_status(name);
    if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there) &&
        !std::filesystem::is_symlink(there)) {
        throw Error(ExitCode::cannot_create, {concat(name.string(), " cannot be replaced"),
                                              "it is not a regular file", "Name another file"});
    }
}

void PartialFile::rename(std::filesystem::path const& name) {
    require_replaceable(name);
    rename_durably(path_, name);
    renamed_ = true;
}

} // namespace lockstep
