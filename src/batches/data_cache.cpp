#include "batches/data_cache.hpp"

namespace lockstep::train {

void keep_near(config::Data const& data, std::initializer_list<data::Dataset*> sets,
               comm::Communicator const& world) {
    constexpr std::string_view local = "local:";
    bool const on_disk = data.cache.starts_with(local);
    if (!on_disk && data.cache != "memory") {
        return;
    }
    auto const host = world.split_by_host();
    for (auto* const set : sets) {
        if (set != nullptr && on_disk) {
            set->keep_on_disk(data.cache.substr(local.size()), host);
        } else if (set != nullptr) {
            set->keep_in_memory(host);
        }
    }
}

} // namespace lockstep::train
