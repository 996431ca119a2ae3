#pragma once

#include "comm/collective_library.hpp"

namespace lockstep::comm {

/// oneCCL, by its C interface; null: built without it.
CollectiveLibrary const* oneccl_library();

} // namespace lockstep::comm
