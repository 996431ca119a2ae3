#include "batches/constant_answer.hpp"

#include "base/text.hpp"
#include "batches/workload.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

namespace {

/// Returns the same outputs for each sample.
class ConstantModel : public nn::Model {
  public:
    explicit ConstantModel(std::vector<double> const& outputs)
        : outputs_(torch::tensor(outputs, torch::kFloat32).unsqueeze(0)) {}

    torch::Tensor forward(nn::Fields const& inputs) override {
        return outputs_.to(inputs.only().device()).expand({inputs.samples(), -1});
    }

  private:
    torch::Tensor outputs_; ///< [1, outputs]
};

std::shared_ptr<ConstantAnswer const> mean_of(Workload const& work) {
    auto mean = work.target_moments->mean;
    if (!std::ranges::all_of(mean, [](double value) { return std::isfinite(value); })) {
        return nullptr;
    }
    auto const& facts = work.facts;
    for (std::size_t i = 0; i < facts.target_mean.size(); ++i) { // what models return
        mean[i] = (mean[i] - facts.target_mean[i]) / facts.target_std[i];
    }
    mean.resize(static_cast<std::size_t>(work.task->outputs()), mean.front());
    return std::make_shared<ConstantAnswer>("predicting the mean of the training targets",
                                            std::make_shared<ConstantModel>(mean), true);
}

/// The more frequent a class, the higher its score.
std::shared_ptr<ConstantAnswer const> class_answer(task::Samples const& samples) {
    auto const& counts = samples.class_counts;
    auto const commonest = std::ranges::max_element(counts) - counts.begin();
    std::vector<double> scores;
    for (auto const count : counts) {
        scores.push_back(std::log(static_cast<double>(count + 1)));
    }
    return std::make_shared<ConstantAnswer>(
        concat("always predicting ", samples.class_names[static_cast<std::size_t>(commonest)],
               ", the most frequent class of the training set"),
        std::make_shared<ConstantModel>(scores), false);
}

} // namespace

std::shared_ptr<ConstantAnswer const> constant_answer(config::Deck const& deck,
                                                      Workload const& work) {
    if (work.target_moments) {
        return mean_of(work);
    }
    auto const& counts = work.samples.class_counts;
    bool const fits = deck.task.kind == "classification" && !counts.empty() &&
                      counts.size() == work.samples.class_names.size() &&
                      std::cmp_equal(counts.size(), work.task->outputs());
    return fits ? class_answer(work.samples) : nullptr;
}

} // namespace lockstep::train
