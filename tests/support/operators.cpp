// Operators of a user's, for exported programs that call them: one with a derivative, one without,
// and two that change what they are given, of which one does not say so.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>
#include <torch/version.h>

[[gnu::used]] static char const* const torch_stamp = "lockstep_torch_version=" TORCH_VERSION;

namespace {

at::Tensor cube(at::Tensor const& x) {
    return x * x * x;
}

/// As a kernel of loops: autograd sees nothing of it.
at::Tensor no_derivative(at::Tensor const& x) {
    return cube(x.detach());
}

at::Tensor cube_backward(at::Tensor const& gradient, at::Tensor const& x) {
    return gradient * (x * x) * 3;
}

/// Through the dispatcher, so that compiled steps call it, too.
template <class... Tensors>
at::Tensor call(char const* name, Tensors const&... tensors) {
    return c10::Dispatcher::singleton()
        .findSchemaOrThrow(name, "")
        .template typed<at::Tensor(Tensors const&...)>()
        .call(tensors...);
}

struct Cube : torch::autograd::Function<Cube> {
    static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor const& x) {
        at::AutoDispatchBelowADInplaceOrView const below;
        context->save_for_backward({x});
        return call("lockstep_test::cube", x);
    }

    static torch::autograd::variable_list
    backward(torch::autograd::AutogradContext* context,
             torch::autograd::variable_list const& gradients) {
        return {call("lockstep_test::cube_backward", gradients.front(),
                     context->get_saved_variables().front())};
    }
};

at::Tensor cube_with_derivative(at::Tensor const& x) {
    return Cube::apply(x);
}

void halve(at::Tensor const& x) {
    x.mul_(0.5);
}

at::Tensor halve_unsaid(at::Tensor const& x) {
    x.detach().mul_(0.5);
    return x.clone();
}

at::Tensor form_of(at::Tensor const& x) {
    return at::empty_like(x);
}

} // namespace

TORCH_LIBRARY(lockstep_test, library) {
    library.def("cube(Tensor x) -> Tensor");
    library.def("cube_backward(Tensor gradient, Tensor x) -> Tensor");
    library.def("no_derivative(Tensor x) -> Tensor");
    library.def("halve(Tensor(a!) x) -> ()");
    library.def("halve_unsaid(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(lockstep_test, CPU, library) {
    library.impl("halve_unsaid", halve_unsaid);
}

TORCH_LIBRARY_IMPL(lockstep_test, Meta, library) {
    library.impl("halve_unsaid", form_of);
}

TORCH_LIBRARY_IMPL(lockstep_test, CompositeExplicitAutograd, library) {
    library.impl("cube", cube);
    library.impl("cube_backward", cube_backward);
    library.impl("no_derivative", no_derivative);
    library.impl("halve", halve);
}

TORCH_LIBRARY_IMPL(lockstep_test, Autograd, library) {
    library.impl("cube", cube_with_derivative);
}
