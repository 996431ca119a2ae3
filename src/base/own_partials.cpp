#include "base/own_partials.hpp"

#include "base/partial_file.hpp"
#include "base/text.hpp"

#include <exception>
#include <string>
#include <unistd.h>

namespace lockstep {

void remove_own_partials(std::filesystem::path const& file) noexcept {
    try {
        auto const own = concat(file.filename().string(), ".partial-", token_host(), "-",
                                static_cast<long long>(::getpid()), "-");
        auto const folder = file.has_parent_path() ? file.parent_path() : ".";
        for (auto const& entry : std::filesystem::directory_iterator(folder)) {
            if (entry.path().filename().string().starts_with(own)) {
                std::error_code none;
                std::filesystem::remove(entry.path(), none);
            }
        }
    } catch (std::exception const&) {
        return; // what is left is told by its name
    }
}

} // namespace lockstep
