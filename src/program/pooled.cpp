#include "program/pooled.hpp"

#include "base/text.hpp"
#include "program/max_pool.hpp"

#include <utility>

namespace lockstep::program {

namespace {

/// (self, kernel_size, stride, padding, dilation, ceil_mode)
MaxPoolOptions options_of(std::size_t dimensions, std::vector<c10::IValue> const& given) {
    return {.dimensions = dimensions,
            .kernel = given[1].toIntVector(),
            .stride = given[2].toIntVector(),
            .padding = given[3].toIntVector(),
            .dilation = given[4].toIntVector(),
            .ceil_mode = given[5].toBool()};
}

void pool_into(std::vector<c10::IValue>& stack, at::Tensor outputs) {
    stack.clear();
    stack.emplace_back(std::move(outputs));
}

} // namespace

std::shared_ptr<Replacement const> pooled(Node const& node) {
    auto const& name = node.op->schema().name();
    bool const wants_indices = node.results.size() > 1 && node.results[1].slots.front();
    for (std::size_t dimensions = 1; dimensions <= 3; ++dimensions) {
        auto const plain = concat("aten::max_pool", dimensions, "d");
        bool const has_indices = name == concat(plain, "_with_indices");
        if (name != plain && !has_indices) {
            continue;
        }
        return std::make_shared<Replacement const>([=](std::vector<c10::IValue>& stack) {
            auto const inputs = stack[0].toTensor();
            auto const options = options_of(dimensions, stack);
            if (wants_indices) {
                auto pooled = max_pool_with_indices(inputs, options);
                pool_into(stack, std::move(pooled.outputs));
                stack.emplace_back(std::move(pooled.indices));
                return;
            }
            pool_into(stack, max_pool(inputs, options));
            if (has_indices) {
                stack.emplace_back(at::Tensor()); // nobody reads them
            }
        });
    }
    return nullptr;
}

} // namespace lockstep::program
