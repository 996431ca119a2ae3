#pragma once

#include <torch/types.h>

namespace lockstep::task {

/// 1 - the soft Dice coefficient of each sample, as a mean over all classes: with probabilities p
/// and truth y of a class, 1 - (2 sum p y + e) / (sum p + sum y + e), e = 1e-5, over the places
/// that count, as MONAI's DiceLoss(softmax=True, to_onehot_y=True) has it; 0 where none counts.
///
/// Shape  logits [n, classes, place…] float32, labels [n, place…] int64, negative: does not count;
///        returns [n]
torch::Tensor dice_losses(torch::Tensor const& logits, torch::Tensor const& labels);

} // namespace lockstep::task
