#include "base/random_token.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <string_view>
#include <sys/random.h>
#include <vector>

namespace lockstep {

std::string random_token(std::size_t bytes) {
    std::vector<unsigned char> drawn(bytes);
    if (::getrandom(drawn.data(), drawn.size(), 0) != static_cast<ssize_t>(bytes)) {
        throw Error(ExitCode::unavailable,
                    {"cannot draw random bytes", concat("getrandom: ", system_text(errno)),
                     "Start the command again; ask the administrator if this persists"});
    }
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (auto const byte : drawn) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

} // namespace lockstep
