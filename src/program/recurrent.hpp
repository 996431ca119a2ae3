#pragma once

#include <string_view>

namespace lockstep::program {

/// Whether an operator is a recurrent layer; its overload "data" takes packed rows.
constexpr bool is_recurrent(std::string_view name) {
    return name == "aten::lstm" || name == "aten::gru" || name == "aten::rnn_tanh" ||
           name == "aten::rnn_relu";
}

} // namespace lockstep::program
