#include "nn/dropout_masks.hpp"

#include "base/random.hpp"
#include "nn/to_device.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <stdexcept>

namespace lockstep::nn {

namespace {

/// As torch's own modes, such as autocast, a thread's.
thread_local DropoutMasks::Scope* innermost = nullptr;

torch::Tensor drawn(DropoutMasks::Form const& form, std::uint64_t key) {
    auto generator = at::detail::createCPUGenerator(random_key(key, Stream::dropout, {form.layer}));
    return at::empty(form.sizes, form.options.device(at::kCPU)).bernoulli_(form.keep, generator);
}

} // namespace

DropoutMasks::Scope::Scope(DropoutMasks& masks, Pass pass)
    : masks_(masks), pass_(pass), before_(innermost) {
    innermost = this;
}

DropoutMasks::Scope::~Scope() {
    innermost = before_;
}

DropoutMasks::Noted* DropoutMasks::find(Form const& form) {
    auto const found = std::ranges::find_if(noted_, [&](Noted const& noted) {
        return noted.form.layer == form.layer && noted.form.sizes == form.sizes &&
               noted.form.options.dtype() == form.options.dtype() && noted.form.keep == form.keep;
    });
    return found == noted_.end() ? nullptr : &*found;
}

torch::Tensor DropoutMasks::mask(Form const& form, std::uint64_t key) {
    if (is_recorded()) {
        auto const* const noted = innermost->masks_.find(form);
        if (noted == nullptr || !noted->values.defined()) {
            throw std::logic_error("a layer draws random numbers that it did not draw before");
        }
        return noted->values;
    }
    if (innermost != nullptr && innermost->masks_.find(form) == nullptr) {
        innermost->masks_.noted_.push_back({form, {}});
    }
    return to_device(drawn(form, key), form.options.device());
}

void DropoutMasks::draw(std::uint64_t key) {
    torch::NoGradGuard const no_grad;
    for (auto& [form, values] : noted_) {
        auto const there = to_device(drawn(form, key), form.options.device());
        if (values.defined()) {
            values.copy_(there);
        } else {
            values = there;
        }
    }
}

bool DropoutMasks::is_recorded() {
    return innermost != nullptr && innermost->pass_ == DropoutMasks::Pass::recorded;
}

} // namespace lockstep::nn
