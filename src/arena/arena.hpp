#pragma once

#include "arena/layout.hpp"

namespace lockstep::train {

/// An exchange's array as a tensor that does not own it.
torch::Tensor borrowed(float* values, std::int64_t size, torch::Device device);

/// The parameters of one or several modules as views of one flat float32 array, which an exchange
/// owns and other ranks may see. A parameter of a shorter type keeps memory of its own and follows
/// the array, which is its master copy.
class Arena {
  public:
    /// Shape  parameters [layout.size] float32; entries lie where `layout` says
    Arena(Layout const& layout, torch::Tensor parameters);

    torch::Tensor const& parameters() const noexcept { return parameters_; }

    /// Copies a model's parameters into those elements of the array that are in `ranges`.
    void fill_from(nn::Model const& model, std::vector<Range> const& ranges) const;
    /// Makes the parameters of `model` views of the array; they then have its values. The model is
    /// on the array's device.
    void adopt(nn::Model& model);
    /// Updates parameters of shorter types from the array.
    void refresh() const;
    /// Whether there are such parameters.
    bool has_followers() const noexcept { return !followers_.empty(); }

  private:
    torch::Tensor view(ParameterRange const& entry) const;

    Layout const& layout_;
    torch::Tensor parameters_;
    struct Follower {
        torch::Tensor parameter;
        torch::Tensor master;
    };
    std::vector<Follower> followers_;
};

} // namespace lockstep::train
