#include "base/suggestion.hpp"

#include "base/text.hpp"

#include <utility>

namespace lockstep {

std::string suggestion(std::string_view name, std::vector<std::string> const& candidates,
                       std::string otherwise) {
    auto const near = nearest_name(name, candidates);
    return near.empty() ? std::move(otherwise) : concat("Did you mean ", near, "?");
}

} // namespace lockstep
