#include "base/partial_file.hpp"

#include "base/file.hpp"

#include <system_error>

namespace lockstep {

PartialFile::~PartialFile() {
    if (!renamed_) {
        std::error_code ignored; // the failure that brought us here is the one to tell
        std::filesystem::remove(path_, ignored);
    }
}

void PartialFile::rename(std::filesystem::path const& name) {
    rename_durably(path_, name);
    renamed_ = true;
}

} // namespace lockstep
