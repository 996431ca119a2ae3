#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Identifies the interfaces that this library was built from.
std::string_view core_build_id();

/// Functions of two builds would call each other with different layouts, and compute nonsense.
///
/// Throws  Error 69 unless the library was built from the program's interfaces
void require_same_build(std::string const& library, std::string_view its_id,
                        std::string_view program_id);

} // namespace lockstep
