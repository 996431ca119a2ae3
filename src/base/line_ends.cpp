#include "base/line_ends.hpp"

#include "base/text.hpp"

namespace lockstep {

void require_line_ends(std::filesystem::path const& path, std::string_view text, ExitCode code) {
    if (text.find('\n') == text.npos && trimmed(text).find('\r') != text.npos) {
        throw Error(code, {path.string(), "its lines end with carriage returns alone",
                           concat("Convert its line ends: tr '\\r' '\\n' <", path.string(), " >NEW",
                                  path.extension().string())});
    }
}

} // namespace lockstep
