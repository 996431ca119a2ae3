#include "checkpoint/model_file.hpp"
#include "federate/change.hpp"
#include "federate/server_step.hpp"
#include "federate/sound_charter.hpp"

#include <array>
#include <cmath>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::federate;

namespace {

ModelVector model_of(std::vector<float> values) {
    ModelVector model;
    model.values = std::move(values);
    return model;
}

/// The values are norm.running_var, norm.weight and a table that is a buffer by the file's note.
ModelVector model_with_buffers(test::ScratchDir const& scratch, bool with_statistics) {
    std::array<float, 1> const variance{0.5F};
    std::array<float, 1> const weight{1};
    std::array<float, 1> const table{3};
    std::vector<checkpoint::NamedArray> arrays{
        {"model/norm/weight", h5::Type::f32, {1}, std::as_bytes(std::span(weight))},
        {"model/table", h5::Type::f32, {1}, std::as_bytes(std::span(table))}};
    if (with_statistics) {
        arrays.push_back(
            {"model/norm/running_var", h5::Type::f32, {1}, std::as_bytes(std::span(variance))});
    }
    checkpoint::Record record;
    record.notes["buffers"] = "model/table";
    checkpoint::write_model(scratch / "model.h5", arrays, record);
    return ModelVector::read(scratch / "model.h5");
}

} // namespace

TEST_CASE("fedavg and fedprox add the mean change times the server's rate") {
    for (auto const* const strategy : {"fedavg", "fedprox"}) {
        Charter charter;
        charter.strategy = strategy;
        charter.server_rate = 0.5;
        auto model = model_of({1, -2});
        apply_change(model, std::array{0.5, 4.0}, charter);
        CHECK(model.values == std::vector<float>{1.25F, 0.0F});
        CHECK(model.first_moment.empty());
    }
}

TEST_CASE("fedadam takes Adam's steps without bias correction") {
    Charter charter;
    charter.strategy = "fedadam";
    charter.server_rate = 0.01;
    charter.server_epsilon = 1e-3;
    auto model = model_of({1});
    double value = 1;
    double first = 0;
    double second = 1e-6;
    for (auto const change : {0.5, -0.25, 0.125}) {
        apply_change(model, std::array{change}, charter);
        first = 0.9 * first + 0.1 * change;
        second = 0.99 * second + 0.01 * change * change;
        value += 0.01 * first / (std::sqrt(second) + 1e-3);
        CHECK(std::fabs(model.values[0] - value) < 1e-6);
    }
}

TEST_CASE("buffers become the plain mean of the sites', whatever step the weights take") {
    test::ScratchDir const scratch;
    for (auto const* const strategy : {"fedavg", "fedprox", "fedadam", "scaffold"}) {
        INFO(strategy);
        auto model = model_with_buffers(scratch, true);
        REQUIRE(model.values == std::vector<float>{0.5F, 1, 3});
        Charter charter;
        charter.strategy = strategy;
        charter.server_rate = 2;
        apply_change(model, std::array{-0.25, 0.125, 0.0}, charter);
        CHECK(model.values[0] == 0.25F);
        CHECK(model.values[1] > 1.2F); // its own step
        CHECK(model.values[2] == 3.0F);
        model.write(scratch / "after.h5", 1); // which knows its buffers, too
        CHECK(ModelVector::read(scratch / "after.h5").buffers() ==
              std::vector<bool>{true, false, true});
    }
}

TEST_CASE("noise changes no buffer, no site sends the change of one, and statistics are refused") {
    test::ScratchDir const scratch;
    Charter charter;
    charter.noise = 1;
    charter.clip = 1;
    auto const first = model_with_buffers(scratch, false);
    auto trained = first;
    trained.values = {1.5F, 7};
    ChangeForm const form{{.range = 4, .scale = 1024}, 1, 1, charter.is_private()};
    CHECK(encoded_change(first, trained, form).words == std::vector<std::uint32_t>{512, 0});
    auto model = first;
    apply_change(model, std::array{0.5, -0.7}, charter);
    CHECK(model.values == std::vector<float>{1.5F, 3});
    require_fit_for_noise(charter, first);

    auto const norm = model_with_buffers(scratch, true);
    auto const error = test::error_of([&] { require_fit_for_noise(charter, norm); });
    CHECK(test::says(error, "--noise cannot be combined with the model's buffer norm.running_var"));
    CHECK(test::says(error, "group norm"));
    require_fit_for_noise(Charter(), norm);
    // One that was founded all the same: who joins or trains refuses it.
    charter.id = "0123";
    charter.model = norm.fingerprint();
    auto const key = PrivateKey::open_or_make(scratch / "keys/coordinator", coordinator_name);
    auto const founded = Federation::found(scratch / "federation", charter, norm, key);
    CHECK(test::code_of([&] { require_fit_for_noise(founded); }) == ExitCode::data);
}
