#pragma once

#include "arena/arena.hpp"
#include "lockstep/nn/model.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace lockstep::train {

/// The models that a rank computes on, one or several that run concurrently. All are views of the
/// rank's parameters: of the arena, or of a copy of it on another device.
class RankInstances {
  public:
    struct Setup {
        nn::Model& model; ///< the first, on the arena's device
        std::size_t count = 1;
        std::function<std::shared_ptr<nn::Model>()> another{}; ///< for more than one
        torch::Device device;                                  ///< the arena's
        /// Which they are distributed over, `device` first; empty: all on `device`.
        std::vector<torch::Device> devices{};
    };
    /// `layout` and `arena` must outlive it.
    RankInstances(Setup const& parts, Layout const& layout, Arena& arena);

    std::vector<nn::Model*> const& models() const noexcept { return models_; }
    /// Brings the other devices up to the last update.
    void copy_parameters() const;

  private:
    Arena const& arena_;
    std::vector<std::unique_ptr<Arena>> copies_; ///< on the other devices
    std::vector<std::shared_ptr<nn::Model>> others_;
    std::vector<nn::Model*> models_;
};

} // namespace lockstep::train
