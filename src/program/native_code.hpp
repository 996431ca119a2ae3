#pragma once

#include "program/archive.hpp"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace torch::inductor {
class AOTIModelContainerRunner;
} // namespace torch::inductor

namespace lockstep::program {

/// A shared library that AOTInductor made, loaded from an archive.
class NativeCode {
  public:
    /// `record`: without its suffix, .so; the calls that it makes may be in a file next to it
    /// (.json).
    ///
    /// Throws  Error 65 where the archive does not have it; 69 where it cannot be loaded
    NativeCode(Archive const& archive, std::string const& record);
    ~NativeCode();
    NativeCode(NativeCode const&) = delete;
    NativeCode& operator=(NativeCode const&) = delete;

    /// Shape   contiguous tensors of the shapes that it was compiled for, which it does not check
    /// Throws  Error 65 where it takes another number of tensors; 64 where an operator fails, as
    ///         for a class that is out of range; 71 out of memory
    std::vector<at::Tensor> run(std::vector<at::Tensor> inputs);

  private:
    std::string file_;
    std::unique_ptr<torch::inductor::AOTIModelContainerRunner> runner_;
};

} // namespace lockstep::program
