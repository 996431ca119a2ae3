#include "base/proc_file.hpp"

#include "base/text.hpp"

#include <charconv>
#include <fstream>
#include <sstream>

namespace lockstep {

std::string proc_text(std::filesystem::path const& path) {
    std::ostringstream text;
    // Not by iterators, from which a process that ends meanwhile would come as an exception.
    text << std::ifstream(path).rdbuf();
    return text.str();
}

std::optional<std::uint64_t> proc_value(std::string const& text, std::string const& name) {
    for (auto const& line : split(text, '\n')) {
        if (line.starts_with(name) && line.size() > name.size() + 1 &&
            (line[name.size()] == ' ' || line[name.size()] == ':')) {
            auto const digits = line.find_first_of("0123456789", name.size());
            std::uint64_t value = 0;
            if (digits != std::string::npos) {
                std::from_chars(line.data() + digits, line.data() + line.size(), value);
            }
            return value;
        }
    }
    return std::nullopt;
}

} // namespace lockstep
