#pragma once

#include <string_view>

namespace lockstep {

/// Throws  Error 69 unless this library was built from the interfaces that `build_id` names
void require_core_build(std::string_view build_id);

} // namespace lockstep
