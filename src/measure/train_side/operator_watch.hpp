#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/nn/module.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::measure {

/// An operator of LibTorch that has run, while its values are there.
struct OperatorSeen {
    std::string name;      ///< "aten::addmm"
    std::string backward;  ///< the node of autograd that it ran in; empty: in forward
    std::string parameter; ///< the parameter that this or an earlier operator last read
    std::span<c10::IValue const> inputs;
    std::span<c10::IValue const> outputs;
    std::vector<bool> written{}; ///< by input: the operator writes there
};

/// Who is told of operators.
class OperatorListener {
  public:
    virtual ~OperatorListener() = default;
    virtual void heard(OperatorSeen const& seen) = 0;
};

/// Tells of each operator that gives values of its own, and that this thread, and the threads of
/// its backward passes, end while this object exists: innermost ones first. The listener's own
/// operators are not told of.
class OperatorWatch {
  public:
    /// `listener` must outlive it, and `model`'s parameters stay where they are.
    OperatorWatch(OperatorListener& listener, torch::nn::Module const& model);
    OperatorWatch(OperatorWatch const&) = delete;
    OperatorWatch& operator=(OperatorWatch const&) = delete;
    ~OperatorWatch();

    struct State;

  private:
    std::unique_ptr<State> state_;
    c10::DebugInfoGuard guard_; ///< LibTorch hands it on to the threads of backward
    at::CallbackHandle handle_;
};

} // namespace lockstep::measure
