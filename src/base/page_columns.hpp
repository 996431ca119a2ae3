#pragma once

#include <cstddef>

namespace lockstep {

/// The columns that a help text may use: those of the terminal on standard output, of a wide one
/// 100; elsewhere 80. COLUMNS decides instead where it is set. Never fewer than 40.
std::size_t page_columns();

} // namespace lockstep
