#include "train/saved_model.hpp"

#include "lockstep/train/load_weights.hpp"
#include "nn/export_script.hpp"

#include "workload.hpp"

namespace lockstep::train {

void export_script(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                   std::filesystem::path const& out) {
    auto plain = deck; // layers that only matter while training are left out
    plain.precision.gradient_checkpointing = false;
    plain.communication.sync_batch_norm = false;
    auto const work = open_workload(plain, open_datasets(plain), [](double) {});
    load_weights(*work.model, file);
    nn::export_script(*work.model, model_interface(plain, work.samples, *work.task), out);
}

} // namespace lockstep::train
