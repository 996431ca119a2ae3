#include "base/network_bytes.hpp"

#include "base/text.hpp"

#include <sstream>

namespace lockstep {

double network_bytes(std::string const& text) {
    double bytes = 0;
    for (auto const& line : split(text, '\n')) {
        auto const colon = line.find(':');
        if (colon == std::string::npos ||
            trimmed(std::string_view(line).substr(0, colon)) == "lo") {
            continue;
        }
        constexpr int sent_at = 8; // after eight numbers on what was received
        std::istringstream numbers(line.substr(colon + 1));
        double value = 0;
        for (int at = 0; at <= sent_at && numbers >> value; ++at) {
            bytes += at == 0 || at == sent_at ? value : 0;
        }
    }
    return bytes;
}

} // namespace lockstep
