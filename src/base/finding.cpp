#include "base/finding.hpp"

#include <algorithm>

namespace lockstep {

Colour worst(std::vector<Finding> const& findings) {
    auto colour = Colour::green;
    for (auto const& finding : findings) {
        colour = std::max(colour, finding.colour);
    }
    return colour;
}

std::string name_of(Colour colour) {
    return colour == Colour::green ? "green" : colour == Colour::yellow ? "yellow" : "red";
}

} // namespace lockstep
