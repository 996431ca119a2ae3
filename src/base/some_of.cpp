#include "base/some_of.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace lockstep {

std::string some_of(std::vector<std::string> const& names, std::size_t max) {
    auto const shown = static_cast<std::ptrdiff_t>(std::min(max, names.size()));
    auto const first = joined({names.begin(), names.begin() + shown}, ", ");
    return names.size() <= max
               ? first
               : concat(first, " and ", count_text(std::ssize(names) - shown), " more");
}

} // namespace lockstep
