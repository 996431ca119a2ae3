#pragma once

#include "h5/file.hpp" // rooms: comm lies below h5

#include <torch/torch.h> // torch: not in this room

namespace lockstep::comm {

/// Does not say whether it is collective.
void silent(Communicator const& comm);

/// Says so.
///
/// Collective  over `comm`
void speaking(Communicator const& comm);

/// Of what is left open.
int open_one();
/// That of another.
int open_other();

/// Those that are meant. A later line may begin so:
/// Of several, the first.
int open_ones();

} // namespace lockstep::comm
