// Mixed precision on torch's backend "sim", with the lists of operators that CUDA has.

#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace lockstep::sim {

namespace {

using namespace at::autocast; // the macros below name what is in it

#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FP32_BY_TYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
    AT_FORALL_LOWER_PRECISION_FP(LOWER)
    AT_FORALL_FP32(FP32)
    AT_FORALL_FP32_SET_OPT_DTYPE(FP32_BY_TYPE)
    AT_FORALL_PROMOTE(WIDEST)
}

} // namespace

} // namespace lockstep::sim
