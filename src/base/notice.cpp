#include "base/notice.hpp"

#include "base/escaped.hpp"
#include "base/text.hpp"

#include <iostream>

namespace lockstep {

void notice(std::string_view text) {
    std::cerr << concat("lockstep: ", escaped_line(text), "\n") << std::flush;
}

} // namespace lockstep
