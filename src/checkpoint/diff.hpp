#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// One place where two checkpoints differ.
struct Difference {
    std::string where; ///< a view, an array, or a name in the record
    std::string what;
};

struct Comparison {
    std::vector<Difference> state;   ///< arrays, views, integers, reals, history
    std::vector<Difference> records; ///< deck and notes, which `identical` ignores

    [[nodiscard]] bool identical() const noexcept { return state.empty(); }
};

/// Compares two checkpoints bit by bit; how many ranks wrote either does not matter. A difference
/// in an array is named by the view that it lies in, with the first element and the number of
/// elements that differ.
///
/// Throws  Error 66 or 65 when one cannot be read
Comparison diff(std::filesystem::path const& a, std::filesystem::path const& b);

} // namespace lockstep::checkpoint
