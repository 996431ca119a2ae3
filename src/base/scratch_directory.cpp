#include "base/scratch_directory.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>

namespace lockstep {

ScratchDirectory::ScratchDirectory() {
    std::error_code unknown;
    auto const above = std::filesystem::temp_directory_path(unknown);
    auto name = ((unknown ? std::filesystem::path("/tmp") : above) / "lockstep-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw creation_error(concat("cannot make a temporary directory ", name,
                                    " (TMPDIR can name another directory)"),
                             above, errno);
    }
    path_ = name;
    clean_up_.emplace([path = path_] { remove_tree(path); });
}

ScratchDirectory::~ScratchDirectory() {
    remove_tree(path_);
}

} // namespace lockstep
