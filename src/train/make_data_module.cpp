#include "make_data_module.hpp"

#include "dataset_module.hpp"
#include "rollout_module.hpp"

namespace lockstep::train {

std::unique_ptr<DataModule> make_data_module(DataModuleParts const& parts) {
    if (!parts.work.environment) {
        return std::make_unique<DatasetModule>(parts);
    }
    return std::make_unique<RolloutModule>(RolloutModule::Parts{.world = parts.world,
                                                                .deck = parts.deck,
                                                                .model = *parts.work.model,
                                                                .make = parts.work.environment,
                                                                .samples = parts.work.samples,
                                                                .own = parts.own,
                                                                .device = parts.device});
}

} // namespace lockstep::train
