#include "checkpoint/model_file.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/model_files/load_weights.hpp"

#include <array>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

/// One tensor under two names.
struct Shared : nn::Model {
    Shared() { register_parameter("second", first); }
    torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only() * first; }
    torch::Tensor first = register_parameter("first", torch::zeros({2}));
};

} // namespace

TEST_CASE("a parameter with two names is loaded from a file that has one of them") {
    test::ScratchDir const scratch;
    std::array<float, 2> const values{3, -4};
    auto const write = [&](std::string const& name) {
        checkpoint::write_model(
            scratch / (name + ".h5"),
            {{"model/" + name, h5::Type::f32, {2}, std::as_bytes(std::span(values))}},
            {{{"step", 5}}, {}, "", "", {}});
        return scratch / (name + ".h5");
    };
    for (auto const* const name : {"first", "second"}) {
        Shared model;
        CHECK(train::load_weights(model, {write(name)}).empty());
        CHECK(torch::equal(model.first.detach(), torch::tensor({3.0F, -4.0F})));
    }
    Shared model;
    CHECK(test::error_of([&] { train::load_weights(model, {write("third")}); }).code() ==
          ExitCode::data);
}
