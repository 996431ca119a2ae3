#pragma once

#include "comm/partition.hpp"
#include "train/layout.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace lockstep::train {

/// Catches a module's gradients the moment backward has made them, and puts them into a flat array.
/// The first of a step is copied and later ones are added, so that the array is never zeroed and
/// autograd need not read it; a parameter without gradient counts as zero.
class GradientSink {
  public:
    /// `model` and `layout` must outlive it.
    GradientSink(nn::Model& model, Layout const& layout, comm::Partition const& partition);
    GradientSink(GradientSink const&) = delete;
    GradientSink& operator=(GradientSink const&) = delete;
    ~GradientSink();

    using BucketReady = std::function<void(int bucket)>;

    /// Gradients go to `target` [layout.size] from now on and replace what is there.
    void begin(torch::Tensor target);
    /// In the backward that comes, which is the last into this target: calls `ready` for each
    /// bucket as soon as all its gradients are there, in order.
    ///
    /// Throws  Error 64 out of that backward, for a gradient that comes a second time, or that was
    ///         not expected
    void announce(BucketReady ready);
    /// Zeroes what no gradient came for, and announces the buckets that are left.
    void end();

    /// Whether entry `index` got a gradient since `begin`.
    bool used(std::size_t index) const { return states_[index].written; }
    /// Entries that get no gradient any more: buckets do not wait for them.
    void expect_unused(std::vector<char> const& unused);

  private:
    class Hook;
    struct EntryState {
        torch::Tensor parameter;
        torch::Tensor view;   ///< of the target
        bool written = false; ///< since begin
        bool settled = false; ///< in the backward that is announced
        bool expected = true;
        int first_bucket = 0;
        int last_bucket = 0;
    };

    void arrived(std::size_t index);
    void settle(std::size_t index);
    void announce_complete();

    Layout const& layout_;
    std::vector<EntryState> states_;
    std::vector<int> missing_in_; ///< of each bucket, when all is to come
    std::vector<int> missing_;
    torch::Tensor target_;
    BucketReady ready_;
    int next_bucket_ = 0;
};

} // namespace lockstep::train
