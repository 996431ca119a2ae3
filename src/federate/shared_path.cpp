#include "federate/shared_path.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::federate {

std::filesystem::path shared_path(std::filesystem::path const& directory,
                                  std::filesystem::path const& relative) {
    auto path = directory;
    for (auto const& part : relative.parent_path()) {
        path /= part;
        std::error_code none;
        if (std::filesystem::is_symlink(path, none)) {
            throw Error(ExitCode::cannot_create,
                        {concat("cannot use ", (directory / relative).string()),
                         concat(path.string(),
                                " is a link, which could lead to files outside the federation"),
                         concat("Remove the link ", path.string())});
        }
    }
    return directory / relative;
}

} // namespace lockstep::federate
