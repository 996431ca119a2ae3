#include "config/share.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

namespace lockstep::config {

std::optional<double> share_of(std::string const& files) {
    auto const text = trimmed(files);
    if (!text.ends_with('%')) {
        return std::nullopt;
    }
    return number_of<double>(trimmed(text.substr(0, text.size() - 1)));
}

} // namespace lockstep::config
