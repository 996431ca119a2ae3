#pragma once

#include "lockstep/comm/communicator.hpp"
#include "train/step_witness.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "first_not_finite.hpp"
#include "operator_watch.hpp"

namespace lockstep::measure {

/// How the values of an operator's results are spread, over all that it returned in a replica's
/// micro-batch.
struct Spread {
    std::int64_t values = 0;
    double minimum = 0;
    double maximum = 0;
    double sum = 0;
    double sum_of_squares = 0;
};

/// A value that is not finite, and the step that it is of.
struct Origin {
    train::WitnessedStep step;
    NotFinite value;

    /// The replica and the micro-batch that it is of.
    std::pair<std::int64_t, std::int64_t> place() const;
};

/// Looks at the last step of a replay, or at each of its steps for values that are not finite.
class StepLook : public train::StepWitness, public OperatorListener {
  public:
    enum class For {
        nothing, ///< losses and gradients are enough
        dump,    ///< everything of step `last`
        origin   ///< the first value of any step that is not finite
    };
    StepLook(For reason, std::int64_t last) : reason_(reason), last_(last) {}

    /// The model whose operators are heard from then on; it must outlive the steps.
    void follow(torch::nn::Module const& model) { model_ = &model; }

    bool looks_at(std::int64_t step) const override {
        return reason_ == For::origin || (reason_ == For::dump && step == last_);
    }
    void begin(train::WitnessedStep const& step) override;
    void take(task::Tensors const& batch) override;
    void end(train::StepOutcome const& outcome,
             std::vector<train::ReplicaResult> const& results) override;

    /// The first value that was not finite on this rank, in the step that was looked at last.
    std::optional<Origin> origin() const;
    /// The first of the last steps in a row that were skipped, as fp16 does; 0: none was.
    std::int64_t skipped() const noexcept { return skipped_; }
    std::int64_t last_skipped() const noexcept { return last_skipped_; } ///< of these steps
    /// The origin in the first of them.
    std::optional<Origin> const& skipped_origin() const noexcept { return skipped_origin_; }
    /// What this rank saw of the step, for `write_dump`: as CBOR.
    std::string packed() const;

    void heard(OperatorSeen const& seen) override;

  private:
    bool is_of_pass(OperatorSeen const& seen);

    For reason_;
    std::int64_t last_;
    torch::nn::Module const* model_ = nullptr;
    train::WitnessedStep step_;
    FirstNotFinite first_;
    std::int64_t skipped_ = 0;
    std::int64_t last_skipped_ = 0;
    std::optional<Origin> skipped_origin_;
    std::unique_ptr<OperatorWatch> watch_; ///< while a step runs
    std::vector<task::Tensors> batches_;
    std::vector<train::ReplicaResult> results_;
    struct Heard {
        std::int64_t batch = 0;
        std::string name;
        std::string backward;
        std::string parameter;
        Spread spread;
    };
    bool in_backward_ = false; ///< the last batch
    std::vector<Heard> heard_; ///< in the order in which they ended
};

} // namespace lockstep::measure
