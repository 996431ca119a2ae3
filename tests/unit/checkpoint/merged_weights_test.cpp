#include "checkpoint/adapter.hpp"
#include "checkpoint/merged_weights.hpp"
#include "checkpoint/writer.hpp"
#include "lockstep/base/error.hpp"

#include <array>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

using Views = std::vector<h5::View>;

/// A layer [3, 4] with an adapter of rank 2, another without one; their values lie in one array,
/// and so do averages of them.
constexpr std::size_t count = 12 + 8 + 6 + 4;

Views views_in(std::string const& prefix, std::string const& source) {
    return {{prefix + "/layer/weight", source, 0, {3, 4}},
            {prefix + "/layer/lora_a", source, 12, {2, 4}},
            {prefix + "/layer/lora_b", source, 20, {3, 2}},
            {prefix + "/other/weight", source, 26, {2, 2}}};
}

std::vector<float> numbers(float from) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = from + 0.5F * static_cast<float>(i);
    }
    return values;
}

checkpoint::Record adapted(double scale) {
    checkpoint::Record record;
    record.reals = {{checkpoint::adapter_scale, scale}};
    return record;
}

std::unique_ptr<checkpoint::Weights> written(test::ScratchDir const& scratch,
                                             checkpoint::Record const& record, Views views,
                                             bool averaged = false) {
    auto const values = numbers(-3);
    auto const averages = numbers(1);
    checkpoint::Snapshot snapshot;
    snapshot.arrays = {{"state/parameters", h5::Type::f32, count},
                       {"state/ema", h5::Type::f32, count}};
    snapshot.views = std::move(views);
    if (averaged) {
        for (auto const& view : views_in("optimizer/ema", "state/ema")) {
            snapshot.views.push_back(view);
        }
    }
    snapshot.parts = {{{0, std::as_bytes(std::span(values))}},
                      {{0, std::as_bytes(std::span(averages))}}};
    snapshot.record = record;
    auto const self = comm::Communicator::self();
    return checkpoint::open_weights(
        checkpoint::VerifiedFile(checkpoint::write(self, snapshot, scratch / "c.h5", "1").path));
}

std::vector<float> values_of(checkpoint::Weights const& weights, std::string const& name) {
    std::vector<float> values(weights.find(name)->bytes() / sizeof(float));
    weights.read(*weights.find(name), std::as_writable_bytes(std::span(values)));
    return values;
}

/// W + scale * B * A, as the formula has it.
std::vector<float> wanted(std::vector<float> const& all, double scale) {
    std::vector<float> result;
    for (std::size_t out = 0; out < 3; ++out) {
        for (std::size_t in = 0; in < 4; ++in) {
            double sum = 0;
            for (std::size_t k = 0; k < 2; ++k) {
                sum += static_cast<double>(all[20 + out * 2 + k]) *
                       static_cast<double>(all[12 + k * 4 + in]);
            }
            result.push_back(
                static_cast<float>(static_cast<double>(all[out * 4 + in]) + scale * sum));
        }
    }
    return result;
}

} // namespace

TEST_CASE("a checkpoint's adapters are merged into the weights that are read from it") {
    test::ScratchDir const scratch;
    for (bool const averaged : {false, true}) {
        CAPTURE(averaged);
        auto const weights =
            written(scratch, adapted(0.25), views_in("model", "state/parameters"), averaged);
        CHECK(weights->entries().size() == 2);
        CHECK(weights->find("layer.lora_a") == nullptr);
        CHECK(weights->record().reals.empty()); // what is written from it has none
        auto const all = numbers(averaged ? 1.0F : -3.0F);
        CHECK(values_of(*weights, "layer.weight") == wanted(all, 0.25));
        CHECK(values_of(*weights, "other.weight") ==
              std::vector<float>(all.begin() + 26, all.end()));
        checkpoint::write_model(scratch / "plain.h5", *weights);
        auto const plain = checkpoint::open_weights(scratch / "plain.h5");
        CHECK(plain->entries().size() == 2);
        CHECK(values_of(*plain, "layer.weight") == wanted(all, 0.25));
    }
    // Without a scale, they are tensors like others.
    CHECK(written(scratch, {}, views_in("model", "state/parameters"))->entries().size() == 4);
}

TEST_CASE("an adapter that does not fit its weight is refused") {
    test::ScratchDir const scratch;
    for (auto const& [at, shape] : std::vector<std::pair<std::size_t, h5::Shape>>{
             {0, {4, 3}}, {1, {4, 2}}, {1, {8}}, {2, {2, 3}}, {2, {1, 2}}}) {
        CAPTURE(at);
        auto views = views_in("model", "state/parameters");
        views[at].shape = shape;
        auto const error = test::error_of([&] { written(scratch, adapted(1), views); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "the adapter of layer.weight does not fit it"));
    }
    auto views = views_in("model", "state/parameters");
    views.erase(views.begin() + 2);
    CHECK(test::error_of([&] { written(scratch, adapted(1), views); }).code() == ExitCode::data);
}

TEST_CASE("names of adapters") {
    CHECK(adapter_name("a.weight", adapter_b) == "a.lora_b");
    CHECK(adapter_name("weight", adapter_a) == "lora_a");
    CHECK(adapter_name("a.bias", adapter_a).empty());
    CHECK(adapter_name("a.in_weight", adapter_a).empty());
    CHECK(is_of_adapter("a.lora_a"));
    CHECK(is_of_adapter("lora_b"));
    CHECK(is_of_adapter("model/a/lora_b", '/'));
    CHECK_FALSE(is_of_adapter("lora_a.weight"));
    CHECK_FALSE(is_of_adapter("a.colora_a"));
}
