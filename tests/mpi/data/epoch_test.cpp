#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/replica_tree.hpp"
#include "data/loader.hpp"
#include "data/plan.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

constexpr std::int64_t samples = 137;
constexpr int replicas = 8;

/// Sample i holds i, and so does its label.
void write_set(std::filesystem::path const& path) {
    std::vector<float> values(samples);
    std::vector<std::int64_t> labels(samples);
    for (std::int64_t i = 0; i < samples; ++i) {
        values[static_cast<std::size_t>(i)] = static_cast<float>(i);
        labels[static_cast<std::size_t>(i)] = i;
    }
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::f32, {samples, 1});
    file.create_dataset("targets", h5::Type::i64, {samples});
    file.write("inputs", h5::Type::f32, values);
    file.write("targets", h5::Type::i64, labels);
    file.close();
}

/// What this rank's loader hands out in epoch 2: entry p is the sample at position p of the order,
/// plus one; 0 where another rank has it.
std::vector<std::int64_t> learnt_here(comm::Communicator const& comm, Dataset const& set,
                                      TrainPlan const& plan) {
    auto const mine =
        comm::subtrees_of_ranks(replicas, comm.size())[static_cast<std::size_t>(comm.rank())];
    std::vector<Span> parts;
    for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
        for (int micro = 0; micro < plan.micro_batches(step); ++micro) {
            for (int i = 0; i < mine.count; ++i) {
                parts.push_back(plan.part(step, micro, mine.first + i));
            }
        }
    }
    Loader loader(set,
                  [&](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
                      if (k == static_cast<std::int64_t>(parts.size())) {
                          return std::nullopt;
                      }
                      return plan.indices(2, parts[static_cast<std::size_t>(k)]);
                  },
                  {.workers = 1 + comm.rank() % 3, .prefetch = 1 + comm.rank()});
    std::vector<std::int64_t> learnt(samples, 0);
    for (auto const& part : parts) {
        auto const& batch = loader.next();
        for (std::size_t i = 0; i < batch.inputs().size(); ++i) {
            auto const sample = static_cast<std::int64_t>(batch.inputs()[i]);
            bool const right = sample == batch.targets()[i];
            learnt[static_cast<std::size_t>(part.first) + i] += right ? sample + 1 : 1'000'000;
        }
    }
    return learnt;
}

} // namespace

TEST_CASE("all ranks together learn every sample once, in the order of one rank") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    std::optional<Dataset> set;
    comm::agree(world, "write", [&] {
        if (world.is_root()) {
            write_set(scratch / "set.h5");
        }
    });
    comm::agree(world, "open", [&] { set.emplace(DatasetOptions{(scratch / "set.h5").string()}); });
    TrainPlan const plan(
        {.samples = samples, .batch = 3, .replicas = replicas, .accumulate = 2, .seed = 11});

    std::vector<std::int64_t> learnt;
    comm::agree(world, "read", [&] { learnt = learnt_here(world, *set, plan); });
    comm::all_reduce(world, std::span(learnt), comm::Reduce::sum);
    auto order = plan.indices(2, {0, samples});
    for (auto& sample : order) {
        ++sample;
    }
    CHECK(learnt == order);
    std::vector<bool> seen(samples, false);
    for (auto const sample : order) {
        seen.at(static_cast<std::size_t>(sample - 1)) = true;
    }
    CHECK(std::count(seen.begin(), seen.end(), true) == samples);
}

TEST_CASE("a file that only one rank cannot open ends all ranks with its error") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    comm::agree(world, "write", [&] {
        if (world.is_root()) {
            write_set(scratch / "set.h5");
        }
    });
    int const last = world.size() - 1;
    auto const name = world.rank() == last ? "none.h5" : "set.h5";
    std::optional<ExitCode> code;
    int culprit = -1;
    try {
        comm::agree(world, "open", [&] { Dataset({.files = (scratch / name).string()}); });
    } catch (AgreedError const& error) {
        code = error.code();
        culprit = error.rank();
    }
    CHECK(comm::all_ranks(world, code == ExitCode::no_input));
    CHECK(comm::all_ranks(world, culprit == last));
}
