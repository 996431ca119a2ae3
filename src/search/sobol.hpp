#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::search {

constexpr std::size_t sobol_dimensions = 21;

/// Point `index` of Sobol's sequence with the direction numbers of S. Joe and F. Y. Kuo,
/// "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30
/// (2008), file new-joe-kuo-6; in 32 bits, in the order of the Gray code.
///
/// Shape  [dimensions], at most `sobol_dimensions`
std::vector<std::uint32_t> sobol(std::uint32_t index, std::size_t dimensions);

} // namespace lockstep::search
