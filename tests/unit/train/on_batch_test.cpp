#include "device/on_batch.hpp"

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;

namespace {

/// The error that work on a batch of two samples ends with when LibTorch throws `text`.
Error error_of_batch(std::string const& text) {
    task::Tensors const batch{nn::Fields(torch::zeros({2, 3})), nn::Fields(torch::zeros({2}))};
    return test::error_of(
        [&] { train::on_batch(batch, [&]() -> void { throw std::runtime_error(text); }); });
}

} // namespace

TEST_CASE("what does not fit is told with the batch's shapes and types") {
    auto const error = error_of_batch("sizes do not match\na stack of calls");
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "sizes do not match; the batch has inputs "));
    CHECK(test::says(error, " of Float, targets "));
    CHECK_FALSE(test::says(error, "a stack of calls"));
}

TEST_CASE("a model that mixes devices is told where to create its tensors") {
    auto const error = error_of_batch(
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
        "and cpu!");
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "cuda:0 and cpu. In a script"));
    CHECK(test::says(error, "device=x.device"));
    CHECK_FALSE(test::says(error, "the batch has"));
}
