#include "config/prune_target.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

namespace lockstep::config {

std::optional<double> prune_target(std::string const& text) {
    auto const words = split(text, ' ');
    if (words.size() != 2 || words[0] != "macs") {
        return std::nullopt;
    }
    auto const share = number_of<double>(words[1]);
    return share && *share > 0 && *share < 1 ? share : std::nullopt;
}

} // namespace lockstep::config
