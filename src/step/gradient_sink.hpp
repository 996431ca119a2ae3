#pragma once

#include "arena/layout.hpp"
#include "comm/partition.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace lockstep::train {

/// Catches a module's gradients the moment backward has made them, and puts them into a flat array.
/// The first of a step is copied, or written there by who claims the place, and later ones are
/// added, so that the array is never zeroed and autograd need not read it; a parameter without
/// gradient counts as zero.
class GradientSink {
  public:
    /// `model` and `layout` must outlive it.
    GradientSink(nn::Model& model, Layout const& layout, comm::Partition const& partition);
    GradientSink(GradientSink const&) = delete;
    GradientSink& operator=(GradientSink const&) = delete;
    ~GradientSink();

    /// Buckets [first, last), at least one.
    using BucketsReady = std::function<void(int first, int last)>;

    /// Called before the first gradient of a bucket is put into its place.
    using Prepare = std::function<void(int bucket)>;

    /// Directs gradients to `target` [layout.size] from now on, where they replace what it holds.
    void begin(torch::Tensor target, Prepare prepare = {});
    /// In the next backward, which is the last into this target, calls `ready` for buckets in
    /// order, as soon as all their gradients are complete.
    ///
    /// Throws  Error 64 out of that backward, for a gradient that arrives a second time, or that
    ///         was not expected
    void announce(BucketsReady ready);
    /// Puts all gradients in their places, after a backward.
    void flush();
    /// Zeroes the entries that got no gradient, and announces the remaining buckets.
    void end();

    /// Whether entry `index` got a gradient since `begin`.
    bool used(std::size_t index) const { return pass_.written[index] != 0; }
    /// The same for all entries: it decides which gradients the next backward adds, and which it
    /// copies.
    std::vector<char> const& written() const noexcept { return pass_.written; }
    int buckets() const noexcept { return static_cast<int>(missing_in_.size()); }
    void const* target() const { return target_.const_data_ptr(); }

    /// Runs a backward that a device records instead of executing it: `complete` is called for
    /// buckets as `announce` would call it, and afterwards all state is as it was before.
    ///
    /// Returns  what will have been written after the recorded work
    /// Throws   as that backward; then, too, all state is as before
    std::vector<char> record(BucketsReady complete, std::function<void()> const& backward);
    /// Notes that the part of the recorded work that completes the buckets up to `last` has been
    /// started.
    void replayed(int last);
    /// Notes that all of the recorded work has been started; `written` is what `record` returned.
    void replayed(std::vector<char> const& written) { pass_.written = written; }

    /// Sets the entries that get no gradient any more: buckets do not wait for them.
    void expect_unused(std::vector<char> const& unused);
    /// Expects a gradient for each entry that the layout says is trained.
    void expect_trained();

  private:
    class Hook;
    struct EntryState {
        torch::Tensor parameter;
        torch::Tensor view; ///< of the target
        bool expected = false;
        int first_bucket = 0;
        int last_bucket = 0;
    };

    /// Gradients that have arrived on a device, to be copied or added to their views in one call.
    struct Waiting {
        std::vector<torch::Tensor> into;
        std::vector<torch::Tensor> from;
        std::size_t bytes = 0;
        bool adds = false;
    };

    /// What has arrived since `begin`.
    struct Pass {
        std::vector<char> written; ///< by entry
        std::vector<char> claimed; ///< by entry, for a gradient that will be written in place
        std::vector<char> settled; ///< by entry, in the backward that is announced
        std::vector<int> missing;  ///< by bucket
        Prepare prepare;
        std::vector<char> prepared; ///< by bucket
        BucketsReady ready;
        int next_bucket = 0;
        Waiting waiting;
        std::vector<char> waits; ///< by entry: it is among those
    };

    torch::Tensor claim(std::size_t index);
    void prepare(std::size_t index);
    void arrived(std::size_t index);
    void put(std::size_t index, bool adds);
    void settle(std::size_t index);
    void announce_complete();

    Layout const& layout_;
    std::vector<EntryState> states_;
    std::vector<int> missing_in_; ///< of each bucket, before any gradient has arrived
    torch::Tensor target_;
    Pass pass_;
};

} // namespace lockstep::train
