#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/rl/environment.hpp"

#include <utility>

namespace lockstep::rl {

namespace {

/// Everything is that of the environment within, its state above all: only what is seen differs.
class Scaled : public Environment {
  public:
    Scaled(std::unique_ptr<Environment> within, std::vector<double> const& scale)
        : within_(std::move(within)), scale_(scale.begin(), scale.end()) {
        auto const& spaces = within_->spaces();
        auto const numbers = static_cast<std::size_t>(spaces.observation / spaces.window);
        if (scale_.size() != 1 && scale_.size() != numbers) {
            throw Error(ExitCode::usage,
                        {concat("task.observation-scale has ", scale_.size(), " numbers"),
                         concat("an observation has ", amount_of(numbers, "value"),
                                spaces.window > 1 ? " per time step" : "",
                                ", and the list needs one factor for each"),
                         concat("Write ", numbers, " numbers, or one number for all")});
        }
    }

    Spaces const& spaces() const override { return within_->spaces(); }
    void reset(std::uint64_t key) override { within_->reset(key); }
    Outcome step(std::span<float const> action) override { return within_->step(action); }

    void observe(std::span<float> into) const override {
        within_->observe(into);
        for (std::size_t i = 0; i < into.size(); ++i) {
            into[i] *= scale_[i % scale_.size()];
        }
    }

    std::span<double> state() override { return within_->state(); }

  private:
    std::unique_ptr<Environment> within_;
    std::vector<float> scale_;
};

} // namespace

EnvironmentMaker scaled(EnvironmentMaker environments, std::vector<double> scale) {
    if (scale == std::vector{1.0}) {
        return environments;
    }
    return [environments = std::move(environments), scale = std::move(scale)](Period period) {
        return std::make_unique<Scaled>(environments(period), scale);
    };
}

} // namespace lockstep::rl
