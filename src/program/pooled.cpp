#include "program/pooled.hpp"

#include "program/max_pool.hpp"

#include <string>
#include <utility>

namespace lockstep::program {

std::shared_ptr<Replacement const> pooled(c10::OperatorHandle const& op) {
    for (std::size_t dimensions = 1; dimensions <= 3; ++dimensions) {
        if (op.schema().name() != "aten::max_pool" + std::to_string(dimensions) + "d") {
            continue;
        }
        return std::make_shared<Replacement const>([dimensions](std::vector<c10::IValue>& stack) {
            // (self, kernel_size, stride, padding, dilation, ceil_mode)
            MaxPoolOptions const options{.dimensions = dimensions,
                                         .kernel = stack[1].toIntVector(),
                                         .stride = stack[2].toIntVector(),
                                         .padding = stack[3].toIntVector(),
                                         .dilation = stack[4].toIntVector(),
                                         .ceil_mode = stack[5].toBool()};
            auto outputs = max_pool(stack[0].toTensor(), options);
            stack.clear();
            stack.emplace_back(std::move(outputs));
        });
    }
    return nullptr;
}

} // namespace lockstep::program
