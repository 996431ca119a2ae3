#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"

#include <memory>
#include <string>

namespace lockstep::train {

struct Workload;

/// What a model that learns something must beat: the same answer for any sample.
struct ConstantAnswer {
    std::string what; ///< "predicting the mean of the training targets"
    std::shared_ptr<nn::Model> model;
    bool has_loss = false; ///< whether its loss can be compared with that of models
};

/// The best constant answer that the training set suggests: of a regression the mean of its
/// targets, of a classification its most frequent class. Null for other tasks, and where that is
/// not known.
std::shared_ptr<ConstantAnswer const> constant_answer(config::Deck const& deck,
                                                      Workload const& work);

} // namespace lockstep::train
