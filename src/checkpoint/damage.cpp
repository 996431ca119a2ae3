#include "damage.hpp"

#include "base/text.hpp"

namespace lockstep::checkpoint {

Error not_ours(std::filesystem::path const& path, std::string const& why) {
    return {ExitCode::data,
            {concat("cannot read ", path.string()), why,
             "Check that this is the right file. If it is, copy the file again from its source, or "
             "create the file again"}};
}

Error lacking(std::filesystem::path const& path, std::string const& what) {
    return {ExitCode::data,
            {concat(path.string(), " has no ", what),
             "the file belongs to another model, or is damaged",
             "Check that this is the right file"}};
}

} // namespace lockstep::checkpoint
