#include "data_cache.hpp"

#include "lockstep/base/text.hpp"
#include "lockstep/data/stage_in.hpp"

namespace lockstep::train {

config::Data with_local_copies(config::Data data, comm::Communicator const& world) {
    constexpr std::string_view prefix = "local:";
    if (data.cache.starts_with(prefix)) {
        auto const host = world.split_by_host();
        for (auto* const files : {&data.train, &data.validation, &data.test}) {
            if (!trimmed(*files).empty()) {
                *files = data::stage_in(*files, data.cache.substr(prefix.size()), host);
            }
        }
    }
    return data;
}

void keep_in_memory(config::Data const& data, std::initializer_list<data::Dataset*> sets,
                    comm::Communicator const& world) {
    if (data.cache != "memory") {
        return;
    }
    auto const host = world.split_by_host();
    for (auto* const set : sets) {
        if (set != nullptr) {
            set->keep_in_memory(host);
        }
    }
}

} // namespace lockstep::train
