#pragma once

#include "batches/workload.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"
#include "model_files/common_weights.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::train {

/// How a new model takes the weights of a file.
struct FirstWeightsRule {
    std::string match = "strict"; ///< model.weights-match
    std::int64_t classes = 0;     ///< of data.train; 0: not known
};

/// Gives a new model the weights of a file (model.weights): best.h5, a checkpoint, or safetensors,
/// also in several files with an index; or those of the safetensors files in a directory.
///
/// Collective  over `world`
/// Throws      AgreedError 66 when a rank has no such file, or a different one than rank 0; 65 when
///             it is damaged, holds another model, has nothing in common with the model, or holds
///             values that are not finite; 64 as `load_weights`, and where a frozen parameter of
///             the model would keep the values that were drawn for it
/// Returns     what is told at the start of the run
CommonWeightsText load_first_weights(comm::Communicator const& world, nn::Model& model,
                                     checkpoint::VerifiedFile const& file,
                                     FirstWeightsRule const& rule);

/// A sentence where a run that begins with a file's weights normalizes pictures by its own training
/// set, because the file does not say how those of its own were; else empty.
std::string normalisation_remark(checkpoint::VerifiedFile const& file, data::Facts const& train);

/// The file that model.weights names, or the safetensors files of a directory.
///
/// Collective  over `world`
/// Throws      AgreedError 66 when a rank has no such file, 65 when it is damaged
checkpoint::VerifiedFile open_first_weights(comm::Communicator const& world,
                                            std::filesystem::path const& given);

/// What is known of the samples that the model was trained on so far, in the checkpoint from which
/// a run resumes, in the file of its first weights or in that of its program; nothing for a run
/// that begins with none of them.
std::optional<Origin> origin_of(std::optional<checkpoint::Found> const& found,
                                std::optional<checkpoint::VerifiedFile> const& first_weights,
                                config::Model const& model, bool force);

/// XXH3 of a model's parameters and buffers.
std::uint64_t hash_of_tensors(nn::Model const& model);

/// The hash of all that a teacher's outputs depend on: its tensors, whose hash is `tensors`, the
/// file of its layers, and the libraries that the keys in `own`, the deck's [model], name.
///
/// Throws  Error 66 for a missing library
std::uint64_t teacher_hash(std::uint64_t tensors, nn::Model const& model, config::Model const& own);

} // namespace lockstep::train
