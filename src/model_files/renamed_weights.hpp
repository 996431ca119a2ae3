#pragma once

#include "checkpoint/weights.hpp"
#include "nn/models/names_elsewhere.hpp"

#include <memory>
#include <string>

namespace lockstep::train {

/// The tensors of a file under the names, and in the form, that a package of PyTorch has for them;
/// those that it keeps in one are joined. `model` is the file's, such as "resnet".
///
/// Throws  Error 64 where the package has no such model
std::unique_ptr<checkpoint::Weights> renamed_weights(std::unique_ptr<checkpoint::Weights> ours,
                                                     std::string const& model, nn::Package package);

} // namespace lockstep::train
