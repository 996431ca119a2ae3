#include "first_checkpoint.hpp"

#include "arena/buffers.hpp"
#include "h5/element_type.hpp"
#include "optimizer/optimizer.hpp"

namespace lockstep::train {

double first_checkpoint_bytes(config::Deck const& deck, Workload const& work, Layout const& layout,
                              std::vector<ReplicaArray> const& of_replicas) {
    constexpr double fixed = 16 << 10;
    constexpr double of_view = 700;
    auto const arrays = static_cast<double>(1 + state_names(deck.optimizer).size());
    Buffers const buffers(*work.model);
    auto const replicas = static_cast<double>(deck.run.replicas);
    auto bytes = static_cast<double>(layout.size) * sizeof(float) * arrays;
    bytes += static_cast<double>(buffers.bytes().size()) *
             (deck.communication.broadcast_buffers ? 1 : 1 + replicas);
    for (auto const& array : of_replicas) {
        bytes += static_cast<double>(array.elements * h5::size_of(array.type)) * replicas;
    }
    auto const views = static_cast<double>(layout.entries.size()) * arrays +
                       static_cast<double>(buffers.views(*work.model, "", "", "").size());
    bytes += fixed + of_view * views + static_cast<double>(config::to_text(deck).size());
    if (work.train != nullptr) {
        for (auto const& name : work.train->declared_classes()) {
            bytes += static_cast<double>(name.size() + 1);
        }
    }
    return bytes;
}

} // namespace lockstep::train
