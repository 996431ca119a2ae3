#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/nn/model.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

/// What a model and a file of weights have in common, and what not.
struct CommonWeights {
    struct Fresh {
        std::string name;
        std::string in_file; ///< "fc.weight [10, 512]", of another shape; empty: nothing
    };

    std::vector<std::string> taken;     ///< names of the model's tensors, parameters first
    std::size_t parameters = 0;         ///< how many of them are parameters
    std::int64_t values = 0;            ///< in all of them
    std::vector<Fresh> fresh;           ///< tensors of the model that keep the values they had
    std::vector<std::string> left_over; ///< tensors of the file that the model has no place for
};

/// Loads those of a model's tensors that a file has in the same shape; as `load_weights` in all
/// else.
CommonWeights load_common_weights(nn::Model& model, checkpoint::VerifiedFile const& file);

/// Sentences on what was taken from `path` and what not: one with a few names, for people, and
/// lists of all names.
struct CommonWeightsText {
    std::string remark;
    std::vector<std::string> details; ///< empty where the remark has all names
};
CommonWeightsText text_of(CommonWeights const& common, nn::Model const& model,
                          std::string const& path);

} // namespace lockstep::train
