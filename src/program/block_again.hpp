#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "blocks.hpp"
#include "execution.hpp"

namespace lockstep::program {

/// What a block needs to run again: the values that it had, random numbers and autocast.
class BlockAgain {
  public:
    /// Construct it before the block runs for the first time.
    BlockAgain(std::shared_ptr<Graph const> graph, Block const& block, Execution const& execution,
               c10::Device device);

    /// Runs the block again; call it only once.
    ///
    /// Throws  Error 64 where what it needs was changed in place meanwhile; else as `execute`
    void operator()();

  private:
    at::Generator generator() const;
    void require_unchanged() const;

    std::shared_ptr<Graph const> graph_;
    Block block_;
    c10::Device device_;
    at::ScalarType type_;
    bool cast_;
    std::vector<c10::IValue> values_; ///< of the slots that it needs
    std::vector<std::uint32_t> versions_;
    at::Tensor random_;
};

} // namespace lockstep::program
