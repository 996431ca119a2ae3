#pragma once

#include "batches/loaded_batches.hpp"
#include "comm/agree.hpp"
#include "data/plan.hpp"
#include "lockstep/nn/registry.hpp"
#include "step/engine.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

namespace lockstep::test {

constexpr std::int64_t samples = 131;
constexpr std::uint64_t side = 8;

/// 8, or 5 where so few ranks run: no power of two, so that the tree is uneven.
inline int max_replicas() {
    return world().size() <= 5 ? 5 : 8;
}

inline config::Deck deck_with(config::Model const& model, int replicas = max_replicas()) {
    config::Deck deck;
    deck.run.replicas = replicas;
    deck.communication.bucket_mb = 0.04; // several buckets
    deck.communication.first_bucket_mb = 0.02;
    deck.run.seed = 3;
    deck.communication.timeout_seconds = 20;
    deck.model = model;
    deck.data.batch = 3;
    deck.optimizer.accumulate = 2;
    deck.optimizer.learning_rate = 0.05;
    deck.optimizer.clip_norm = 0.5;
    return deck;
}

/// Images from a fixed recipe, three classes.
inline void write_set(std::filesystem::path const& path) {
    std::vector<std::uint8_t> values;
    std::vector<std::int64_t> labels;
    for (std::uint64_t i = 0; i < samples; ++i) {
        for (std::uint64_t at = 0; at < side * side; ++at) {
            values.push_back(static_cast<std::uint8_t>((i * 37 + at * at * 11 + i * at) % 256));
        }
        labels.push_back(static_cast<std::int64_t>(i % 3));
    }
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::u8, {samples, side, side});
    file.create_dataset("targets", h5::Type::i64, {samples});
    file.write("inputs", h5::Type::u8, values);
    file.write("targets", h5::Type::i64, labels);
    file.close();
}

/// A data set that all ranks have open.
class SharedSet {
  public:
    explicit SharedSet(comm::Communicator const& comm) : scratch_(comm) {
        comm::agree(comm, "writing the set", [&] {
            if (comm.is_root()) {
                write_set(scratch_ / "set.h5");
            }
        });
        comm::agree(comm, "opening the set", [&] {
            set_.emplace(data::DatasetOptions{.files = (scratch_ / "set.h5").string()});
        });
    }
    data::Dataset const& get() const { return *set_; }

  private:
    ScratchDir scratch_;
    std::optional<data::Dataset> set_;
};

/// One training with everything that an engine borrows.
class Training {
  public:
    Training(comm::Communicator const& comm, data::Dataset const& set, config::Deck const& deck,
             int ranks_per_host = 0, std::vector<torch::Device> const& devices = {},
             std::function<std::shared_ptr<nn::Model>()> const& make = {},
             std::vector<std::string> const& host_of_rank = {})
        : deck_(deck), set_(set), plan_({.samples = samples,
                                         .batch = deck.data.batch,
                                         .replicas = static_cast<int>(deck.run.replicas),
                                         .accumulate = static_cast<int>(deck.optimizer.accumulate),
                                         .seed = static_cast<std::uint64_t>(deck.run.seed)}),
          model_(make ? make() : nn::make_model(deck.model, interface(), plan_seed())),
          task_(task::make_task(deck.task, task::Samples::of(set))),
          engine_(train::EngineParts::open(
              {comm,
               deck_,
               *model_,
               *task_,
               torch::kCPU,
               [this] { return nn::make_model(deck_.model, interface(), 99); },
               ranks_per_host > 0 ? comm::HostLayout::of_neighbours(ranks_per_host)
                                  : comm::HostLayout(),
               {},
               devices,
               {},
               {},
               host_of_rank})),
          loader_(set, requests(engine_.nodes()[static_cast<std::size_t>(comm.rank())]), {2, 3}),
          batches_(loader_, set.inputs(), set.targets(), torch::kCPU) {}

    /// `followed`: as in Engine::StepInput. `check`: the number of the step's check, -1: it has
    /// none.
    train::StepOutcome step(double rate = 0.05, bool followed = false, std::int64_t check = -1) {
        auto const in_epoch = step_ % plan_.steps_per_epoch();
        auto const outcome = engine_.step({.batches = batches_,
                                           .step = step_,
                                           .micro_batches = plan_.micro_batches(in_epoch),
                                           .samples = plan_.samples_in_step(in_epoch),
                                           .rate = rate,
                                           .followed = followed,
                                           .check = due(check)});
        ++step_;
        return outcome;
    }

    data::TrainPlan const& plan() const { return plan_; }
    nn::Model& model() { return *model_; }
    train::Engine& engine() { return engine_; }

  private:
    /// The batches of one replica in the next step.
    class BatchesOf : public train::BatchSource {
      public:
        BatchesOf(data::Dataset const& set, data::Loader::Request request)
            : loader_(set, std::move(request), {1, 1}),
              batches_(loader_, set.inputs(), set.targets(), torch::kCPU) {}
        task::Tensors next() override { return batches_.next(); }

      private:
        data::Loader loader_;
        train::LoadedBatches batches_;
    };

    std::optional<train::ComputeCheck::Due> due(std::int64_t check) const {
        if (check < 0) {
            return std::nullopt;
        }
        return train::ComputeCheck::Due{
            .number = check, .batches = [this](int replica) {
                std::int64_t before = 0;
                for (std::int64_t step = 0; step < step_; ++step) {
                    before += plan_.micro_batches(step % plan_.steps_per_epoch());
                }
                return std::make_unique<BatchesOf>(
                    set_, [before, all = requests({.first = replica})](std::int64_t k) {
                        return all(before + k);
                    });
            }};
    }

    nn::Interface interface() const {
        return {{side, side},
                3,
                deck_.precision.gradient_checkpointing,
                deck_.communication.sync_batch_norm};
    }
    std::uint64_t plan_seed() const { return static_cast<std::uint64_t>(deck_.run.seed); }

    /// The batches of the replicas below a node, in the order in which the engine takes them.
    data::Loader::Request requests(comm::TreeNode node) const {
        std::vector<std::vector<std::int64_t>> batches;
        for (std::int64_t epoch = 0; epoch < 30; ++epoch) {
            for (std::int64_t step = 0; step < plan_.steps_per_epoch(); ++step) {
                for (int replica = node.first; replica < node.first + node.count; ++replica) {
                    for (int micro = 0; micro < plan_.micro_batches(step); ++micro) {
                        batches.push_back(plan_.indices(epoch, plan_.part(step, micro, replica)));
                    }
                }
            }
        }
        return [batches = std::move(batches)](
                   std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
            auto const at = static_cast<std::size_t>(k);
            return at < batches.size() ? std::optional(batches[at]) : std::nullopt;
        };
    }

    config::Deck deck_;
    data::Dataset const& set_;
    data::TrainPlan plan_;
    std::shared_ptr<nn::Model> model_;
    std::unique_ptr<task::Task> task_;
    train::Engine engine_;
    data::Loader loader_;
    train::LoadedBatches batches_;
    std::int64_t step_ = 0;
};

/// What a step says that ends with 64 on this rank.
template <class Failure>
std::string refused_step(Training& training) {
    try {
        training.step();
    } catch (Failure const& error) {
        CHECK(error.code() == ExitCode::usage);
        return error.what();
    }
    CHECK(false); // it went well
    return {};
}

inline bool same_bits(nn::Model const& one, nn::Model const& other) {
    auto const all = [](nn::Model const& model) {
        auto tensors = model.parameters();
        auto const buffers = model.buffers();
        tensors.insert(tensors.end(), buffers.begin(), buffers.end());
        return tensors;
    };
    auto const left = all(one);
    auto const right = all(other);
    bool same = left.size() == right.size();
    for (std::size_t i = 0; same && i < left.size(); ++i) {
        same = torch::equal(left[i], right[i]);
    }
    return same;
}

} // namespace lockstep::test
