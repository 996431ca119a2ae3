#include "halving.hpp"

#include "nn/max_pool.hpp"

namespace lockstep::nn {

torch::Tensor halved(torch::Tensor const& inputs) {
    return pooled(inputs,
                  {.dimensions = static_cast<std::size_t>(inputs.dim()) - 2, .kernel = {2}});
}

} // namespace lockstep::nn
