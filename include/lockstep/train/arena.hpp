#pragma once

#include "lockstep/train/layout.hpp"

namespace lockstep::train {

/// A model's parameters as views of one flat array. Nobody else owns their memory afterwards.
class Arena {
  public:
    /// Moves the model to `device` and its parameters into a new array there.
    Arena(nn::Model& model, Layout const& layout, torch::Device device);

    torch::Tensor const& parameters() const noexcept { return parameters_; }

    /// A zeroed array of the arena's form, for gradients.
    torch::Tensor new_gradients() const;

    /// Makes the parameters' gradients views of `gradients`, into which backward adds.
    void bind_gradients(torch::Tensor const& gradients) const;

  private:
    nn::Model& model_;
    Layout const& layout_;
    torch::Tensor parameters_; ///< [layout.size] float32
};

/// A model's buffers (running statistics) as flat arrays, float32 and int64 apart.
class Buffers {
  public:
    explicit Buffers(nn::Model& model);

    torch::Tensor floats;   ///< [n] float32 on the host
    torch::Tensor integers; ///< [m] int64 on the host

    void collect();       ///< from the model
    void restore() const; ///< into the model

    std::vector<h5::View> views(std::string const& prefix, std::string const& floats_path,
                                std::string const& integers_path) const;

  private:
    template <class Action>
    void for_each(Action const& action) const;

    nn::Model& model_;
};

} // namespace lockstep::train
