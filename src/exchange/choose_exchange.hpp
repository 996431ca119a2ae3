#pragma once

#include "comm/exchange.hpp"
#include "comm/host_layout.hpp"
#include "comm/replica_tree.hpp"
#include "comm/rounding.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <torch/types.h>

#include <memory>
#include <vector>

namespace lockstep::train {

/// A part of the arena that is a matrix, row by row.
struct Matrix {
    std::int64_t first = 0;
    std::int64_t rows = 0;
    std::int64_t columns = 0;

    std::int64_t count() const noexcept { return rows * columns; }
};

/// What an engine needs from an exchange.
struct ExchangeNeeds {
    std::vector<comm::TreeNode> nodes; ///< the subtree of each rank
    std::int64_t size = 0;             ///< elements of the arena
    std::size_t step_sums = 0;
    std::size_t payload = 0;      ///< bytes
    bool sums_everywhere = false; ///< for an update that every rank does in full
    bool shards_gradients = false;
    bool shards_parameters = false;
    comm::HostLayout hosts{};
    std::vector<Matrix> matrices; ///< that communication.compression = powersgd approximates
    std::uint64_t seed = 0;       ///< of their first approximations
};

/// What communication.compression rounds gradients and their sums to.
comm::Rounding rounding_of(config::Communication const& options);

/// The exchange that communication.backend and communication.reduction ask for, with arenas on
/// `device`. `auto` is the collective library of the GPUs' vendor where every rank has a GPU of its
/// own and the program was built with that library, else host memory and MPI; ranks that share a
/// GPU are staged through host memory.
///
/// Collective  over `world`, which must outlive it
/// Throws      AgreedError 69 when the deck asks for a library that is not available; 64 when
///             communication.compression contradicts the rest of the deck; 70 where ranks differ
std::unique_ptr<comm::Exchange> choose_exchange(comm::Communicator const& world,
                                                config::Communication const& options,
                                                torch::Device device, ExchangeNeeds const& needs);

} // namespace lockstep::train
