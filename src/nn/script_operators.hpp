#pragma once

#include <optional>
#include <string>

namespace lockstep::nn {

/// Takes from TorchScript, in this process and for good, the operators that reach beyond the
/// tensors that they are given: those that read or write files, send messages, or trust their
/// callers with raw memory. A script that calls one can then not even be compiled, whether in its
/// forward, in another method or in what runs while it is loaded (__setstate__).
void forget_operators_with_reach();

/// The operator that was taken away and that LibTorch, in these words, does not know.
std::optional<std::string> operator_with_reach(std::string const& message);

} // namespace lockstep::nn
