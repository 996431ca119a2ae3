#pragma once

#include "comm/collective_library.hpp"

namespace lockstep::comm {

/// NCCL, or RCCL where the program was built for AMD; null: built without either.
CollectiveLibrary const* nccl_library();

} // namespace lockstep::comm
