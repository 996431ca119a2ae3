#pragma once

#include "lockstep/events/events.hpp"
#include "step/batch_source.hpp"

#include <utility>
#include <vector>

namespace lockstep::train {

/// The first `max` samples as pictures, each from its least value (black) to its largest. Of clips
/// and boxes, the middle slice is shown; with other numbers of channels than one or three, the
/// middle channel.
///
/// Shape    samples [n, height, width], [n, channels, …, height, width], or with channels last
/// Returns  nothing where samples are not images
std::vector<Picture> pictures_of(torch::Tensor const& samples, bool channels_last,
                                 std::int64_t max);

/// Hands a source's batches on, and keeps pictures of the first one's samples.
class PicturedBatches : public BatchSource {
  public:
    /// `batches` must outlive it.
    PicturedBatches(BatchSource& batches, std::int64_t max, bool channels_last)
        : batches_(batches), limit_(max), channels_last_(channels_last) {}

    task::Tensors next() override;
    /// The pictures that were kept; a second call returns none.
    std::vector<Picture> take() { return std::exchange(pictures_, {}); }

  private:
    BatchSource& batches_;
    std::int64_t limit_; ///< 0: no more
    bool channels_last_;
    std::vector<Picture> pictures_;
};

} // namespace lockstep::train
