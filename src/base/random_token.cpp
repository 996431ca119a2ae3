#include "base/random_token.hpp"

#include "base/hex_text.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <cstdint>
#include <sys/random.h>
#include <vector>

namespace lockstep {

std::string random_token(std::size_t bytes) {
    std::vector<std::uint8_t> drawn(bytes);
    if (::getrandom(drawn.data(), drawn.size(), 0) != static_cast<ssize_t>(bytes)) {
        throw Error(ExitCode::unavailable,
                    {"cannot draw random bytes", concat("getrandom: ", system_text(errno)),
                     "Start the command again. If this error comes back, ask the administrator of "
                     "the host"});
    }
    return hex_text(drawn);
}

} // namespace lockstep
