#pragma once

#include <torch/nn/modules/rnn.h>

#include <optional>

namespace lockstep::nn {

/// Where sequences are cut so that episodes begin only at the first step of a stretch: a stretch is
/// one call of a fused LSTM, several times as fast as single steps. Waits for the device.
///
/// Shape  starts [sequences, steps]; returns ends, of which the last is `steps`
std::vector<std::int64_t> stretch_ends(torch::Tensor const& starts);

/// While it exists an LSTM computes in float32 where autocast says float16 on a CPU: oneDNN has no
/// such LSTM.
class ExactLstm {
  public:
    explicit ExactLstm(torch::Device device);

  private:
    std::optional<c10::impl::ExcludeDispatchKeyGuard> without_autocast_;
};

/// Runs a cell over sequences, cut at `ends`; where an episode begins, the state is zero.
///
/// Shape  inputs [sequences, steps, …]; state [sequences, 2 × units]: the hidden state and the cell
///        state; returns [sequences, steps, units], and replaces `state`
torch::Tensor run_cell(torch::nn::LSTMCell& cell, torch::Tensor const& inputs,
                       torch::Tensor const& starts, std::vector<std::int64_t> const& ends,
                       torch::Tensor& state);

} // namespace lockstep::nn
