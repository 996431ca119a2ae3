#include "program/filled.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

namespace lockstep::program {

bool leaves_memory(std::string const& name) {
    return name.starts_with("aten::empty") || name.starts_with("aten::new_empty");
}

std::shared_ptr<Replacement const> filled(c10::OperatorHandle const& op) {
    if (!leaves_memory(op.schema().name())) {
        return nullptr;
    }
    return std::make_shared<Replacement const>([op](std::vector<c10::IValue>& stack) {
        op.callBoxed(stack);
        auto const& made = stack.back().toTensor();
        TORCH_CHECK(made.layout() == c10::kStrided, "its result must be dense");
        at::NoGradGuard const no_grad;
        auto const storage = made.storage();
        // Strides may leave holes, which as_strided would show.
        at::empty({0}, at::device(made.device()).dtype(at::kByte))
            .set_(storage, 0, {static_cast<std::int64_t>(storage.nbytes())}, {1})
            .zero_();
    });
}

} // namespace lockstep::program
