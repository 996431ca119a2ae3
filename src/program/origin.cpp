#include "origin.hpp"

#include "base/text.hpp"

#include <vector>

namespace lockstep::program {

std::string origin_of(std::string const& stack) {
    // File "/home/me/model.py", line 8, in forward
    //   x = self.layer(x)
    auto const lines = split(stack, '\n');
    std::string origin;
    for (std::size_t at = 0; at < lines.size(); ++at) {
        auto const words = trimmed(lines[at]);
        bool const of_torch = words.find("/torch/") != std::string::npos ||
                              words.find("\"torch/") != std::string::npos ||
                              words.find("\"<") != std::string::npos; // made on the way
        auto const quote = words.find("\", line ");
        if (!words.starts_with("File \"") || of_torch || quote == std::string::npos) {
            continue;
        }
        auto const rest = words.substr(quote + 3);
        origin = concat(words.substr(6, quote - 6), ", ", rest.substr(0, rest.find(',')));
        if (at + 1 < lines.size()) {
            origin += concat(": ", trimmed(lines[at + 1]));
        }
    }
    return origin;
}

std::string module_of(std::string const& stack) {
    auto const modules = split(stack, ';');
    auto const last = modules.empty() ? std::vector<std::string>{} : split(modules.back(), ',');
    return last.size() == 3 ? last[1] : std::string();
}

} // namespace lockstep::program
