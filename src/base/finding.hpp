#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// How well something is: green is fine, yellow costs speed or care, red means that it does not
/// work.
enum class Colour { green, yellow, red };

/// Something that a check found, and what to do about it.
struct Finding {
    Colour colour = Colour::green;
    std::string topic;  ///< "ranks", "network"
    std::string what;   ///< "2 ranks share GPU 0 of node7"
    std::string remedy; ///< empty where it is green
};

/// The worst colour of all; green for none.
Colour worst(std::vector<Finding> const& findings);

/// "green", "yellow" or "red".
std::string name_of(Colour colour);

} // namespace lockstep
