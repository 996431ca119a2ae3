#pragma once

#include "program/graph.hpp"

namespace lockstep::program {

/// Within its scope, this thread runs a node's operator. Some of LibTorch's kernels trust their
/// arguments; where one faults (SIGSEGV, SIGBUS, SIGFPE), the process ends with a line that names
/// the operator and its line of Python, and with exit code 65.
class OperatorScope {
  public:
    /// `node` outlives the scope.
    explicit OperatorScope(Node const& node) noexcept;
    ~OperatorScope();
    OperatorScope(OperatorScope const&) = delete;
    OperatorScope& operator=(OperatorScope const&) = delete;

  private:
    Node const* outer_;
};

/// The node whose operator this thread runs; null outside all scopes.
Node const* running_node() noexcept;

/// Takes over those signals once in a process that is ours (base/process_calls.hpp). Faults outside
/// a scope go to the handlers before. After MPI has started, which sets handlers of its own.
void watch_operators();

} // namespace lockstep::program
