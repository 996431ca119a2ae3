#pragma once

#include "lockstep/data/facts.hpp"
#include "lockstep/events/events.hpp"
#include "lockstep/nn/model.hpp"
#include "step/batch_source.hpp"

#include <utility>
#include <vector>

namespace lockstep::train {

/// Whether samples are images, clips or volumes whose last dimension holds the channels, as the
/// model reads them or else as they seem.
bool has_channels_last(nn::Model const& model, data::Facts const& facts,
                       data::FieldInfo const& input);

/// Samples of a set as its file has them, before they were normalised: u8 are bytes again.
///
/// Shape    samples [n, …] of the set's first input, real numbers as a model gets them
/// Returns  [n, …] uint8 or float32
torch::Tensor as_stored(torch::Tensor const& samples, data::Facts const& facts);

/// The grey levels or colours of an image, clip or volume: bytes as they are, other values from the
/// least (0) to the largest (255). Of a clip or a volume, `slice` is shown; if that is negative,
/// the middle one.
///
/// Returns  [height, width, 1 or 3] uint8; undefined where the sample is no image
torch::Tensor levels_of(torch::Tensor const& sample, bool channels_last, std::int64_t slice = -1);

/// Shape  levels [height, width, 1 or 3] uint8
Picture picture_of(torch::Tensor const& levels);

/// The first `max` samples as pictures, each as `levels_of` has it. Of clips and boxes, the middle
/// slice is shown; with other numbers of channels than one or three, the middle channel.
///
/// Shape    samples [n, height, width], [n, channels, …, height, width], or with channels last
/// Returns  nothing where samples are not images
std::vector<Picture> pictures_of(torch::Tensor const& samples, bool channels_last,
                                 std::int64_t max);

/// Hands a source's batches on, and keeps pictures of the first one's samples.
class PicturedBatches : public BatchSource {
  public:
    /// `batches`, and `facts` of their samples, must outlive it.
    PicturedBatches(BatchSource& batches, std::int64_t max, bool channels_last,
                    data::Facts const& facts)
        : batches_(batches), limit_(max), channels_last_(channels_last), facts_(facts) {}

    task::Tensors next() override;
    /// The pictures that were kept; a second call returns none.
    std::vector<Picture> take() { return std::exchange(pictures_, {}); }

  private:
    BatchSource& batches_;
    std::int64_t limit_; ///< 0: no more
    bool channels_last_;
    data::Facts const& facts_;
    std::vector<Picture> pictures_;
};

} // namespace lockstep::train
