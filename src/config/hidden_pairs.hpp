#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::config {

/// A layer, and the layer of the teacher whose outputs its own are compared with.
struct HiddenPair {
    std::string student;
    std::string teacher;

    bool operator==(HiddenPair const&) const = default;
};

/// Returns the pairs of distill.hidden: "a:b, c" is a with b and c with c; "none" is no pair;
/// nothing for another text.
std::optional<std::vector<HiddenPair>> hidden_pairs(std::string const& text);

} // namespace lockstep::config
