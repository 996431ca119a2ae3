#include "batches/make_data_module.hpp"

#include "dataset_module.hpp"

namespace lockstep::train {

std::unique_ptr<DataModule> make_data_module(DataModuleParts const& parts) {
    if (parts.work.environment) {
        return make_rollout_module(parts);
    }
    return std::make_unique<DatasetModule>(parts);
}

} // namespace lockstep::train
