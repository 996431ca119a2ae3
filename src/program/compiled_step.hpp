#pragma once

#include "program/archive.hpp"
#include "program/program.hpp"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::program {

struct StepDescription;

/// The training step of an exported program as native code, made by AOTInductor: forward, loss and
/// backward, in one or several segments. Loading it runs code of the file.
class CompiledStep {
  public:
    /// Why the file's compiled step cannot run here: there is none, or it was made for another
    /// version of LibTorch, another processor, or other threads; empty where it can.
    ///
    /// Throws  Error 65 for a damaged file
    static std::string misfit(Archive const& archive);

    /// The compiled step of a file whose `misfit` is empty; `train` is the file's program for
    /// training, whose tensors it uses.
    ///
    /// Throws  Error 65 for a damaged file; 69 where it cannot be loaded
    CompiledStep(Archive const& archive, Program const& train);
    ~CompiledStep();
    CompiledStep(CompiledStep const&) = delete;
    CompiledStep& operator=(CompiledStep const&) = delete;

    /// Whether it was compiled for batches of this size, which excludes a single sample.
    static bool takes(std::vector<at::Tensor> const& inputs);

    /// What the program returns for a batch that it can take. The first segment runs at once; the
    /// others in the backward pass of the loss, each after the gradients of those before it are
    /// taken.
    ///
    /// Throws  Error 65 where the step returns something else than its file says
    std::vector<at::Tensor> run(std::vector<at::Tensor> const& inputs);

    /// Sets buffers to the values that `run` has computed for them. Call it after backward, which
    /// may need the old values.
    void settle() const;

  private:
    std::shared_ptr<StepDescription const> description_;
    std::vector<std::pair<at::Tensor, at::Tensor>> mutable settled_;
};

} // namespace lockstep::program
