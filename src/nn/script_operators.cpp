#include "script_operators.hpp"

#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::nn {

namespace {

/// Files, processes of torch.distributed, and memory as Python's compiler lays it out.
constexpr std::array<std::string_view, 9> with_reach{
    "aten::save",     "aten::from_file", "aten::set_data",
    "aten::set_",     "prim::rpc_async", "prim::rpc_remote",
    "prim::rpc_sync", "prim::PythonOp",  "prim::IgnoredPythonOp"};
constexpr std::array<std::string_view, 9> spaces_with_reach{
    "c10d::",           "_c10d_functional::", "_c10d_functional_autograd::",
    "symm_mem::",       "_dtensor::",         "inductor::",
    "static_runtime::", "debugprims::",       "_test::"};

bool has_reach(std::string_view name) {
    return std::ranges::find(with_reach, name) != with_reach.end() ||
           std::ranges::any_of(spaces_with_reach,
                               [&](std::string_view space) { return name.starts_with(space); });
}

} // namespace

void forget_operators_with_reach() {
    static bool const once = [] {
        for (auto const& known : torch::jit::getAllOperators()) {
            if (has_reach(known->schema().name())) {
                torch::jit::deregisterOperator(known->schema());
            }
        }
        return true;
    }();
    static_cast<void>(once);
}

std::optional<std::string> operator_with_reach(std::string const& message) {
    constexpr std::string_view begin = "Unknown builtin op: ";
    auto const at = message.find(begin);
    if (at == std::string::npos) {
        return std::nullopt;
    }
    auto const rest = message.substr(at + begin.size());
    auto name = rest.substr(0, rest.find_first_of(". \n"));
    return has_reach(name) ? std::optional(std::move(name)) : std::nullopt;
}

} // namespace lockstep::nn
