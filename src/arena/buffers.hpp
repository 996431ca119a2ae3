#pragma once

#include "h5/file.hpp"
#include "lockstep/nn/model.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep::train {

/// Replica 0's buffers (running statistics), as flat arrays, float32 and int64 apart.
class Buffers {
  public:
    /// Copies the model's buffers. Throws Error 64 for buffers of other types.
    explicit Buffers(nn::Model const& model);

    torch::Tensor floats;   ///< [n] float32 on the host
    torch::Tensor integers; ///< [m] int64 on the host

    void collect_from(nn::Model const& model);
    /// All of the model's buffers as bytes where they are, for `take` once they are on the host.
    torch::Tensor gathered_from(nn::Model const& model) const;
    void take(torch::Tensor const& bytes) const { bytes_.copy_(bytes); }
    void restore_into(nn::Model& model) const;

    /// All buffers as bytes.
    std::span<std::byte> bytes() const;

    /// Each buffer as a dataset PREFIX/NAME onto one of two flat arrays.
    std::vector<h5::View> views(nn::Model const& model, std::string const& prefix,
                                std::string const& floats_path,
                                std::string const& integers_path) const;

  private:
    torch::Tensor integers_of(torch::Tensor const& bytes) const;
    torch::Tensor floats_of(torch::Tensor const& bytes) const;

    torch::Tensor bytes_; ///< memory of both arrays
    std::int64_t integer_bytes_ = 0;
};

} // namespace lockstep::train
