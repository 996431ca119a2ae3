#include "trial_state.hpp"

#include "base/file.hpp"
#include "checkpoint/reader.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/session.hpp"

namespace lockstep::measure {

namespace {

std::uint64_t bound(std::uint64_t elements, int rank, comm::Communicator const& world) {
    return elements * static_cast<std::uint64_t>(rank) / static_cast<std::uint64_t>(world.size());
}

} // namespace

TrialState::TrialState(comm::Communicator const& world, std::uint64_t bytes)
    : elements_(bytes / sizeof(float) / names.size()),
      first_(bound(elements_, world.rank(), world)),
      slice_(bound(elements_, world.rank() + 1, world) - first_), values_(slice_ * names.size()) {
    for (std::size_t at = 0; at < values_.size(); ++at) {
        values_[at] = static_cast<float>((at * 2654435761U) % 1000003); // no disk may guess it
    }
}

checkpoint::Snapshot TrialState::snapshot() const {
    checkpoint::Snapshot snapshot;
    for (std::size_t i = 0; i < names.size(); ++i) {
        snapshot.arrays.push_back({names[i], h5::Type::f32, elements_});
        snapshot.parts.push_back(
            {{first_, bytes().subspan(i * slice_ * sizeof(float), slice_ * sizeof(float))}});
    }
    return snapshot;
}

} // namespace lockstep::measure
