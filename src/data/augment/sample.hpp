#pragma once

#include "data/augment/grid.hpp"
#include "data/augment/sample_form.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::data {

/// Buffers that are reused from sample to sample; each thread has its own.
struct SampleBuffers {
    std::vector<float> spare;
    std::vector<float> target_spare;
    std::vector<std::int64_t> class_spare;
    std::vector<float> work;
    std::vector<std::int64_t> class_work;
};

/// The first input of a sample, and the target that moves with it.
class AugmentedSample {
  public:
    AugmentedSample(SampleForm const& form, Grid<float> input, SampleBuffers& buffers)
        : form_(form), input_(input), buffers_(buffers) {}

    SampleForm const& form() const { return form_; }
    Grid<float>& input() { return input_; }
    SampleBuffers& buffers() { return buffers_; }

    std::optional<Grid<float>> real_target{};
    std::optional<Grid<std::int64_t>> class_target{};

    /// Undoes the normalisation, and puts the places last: colours are from 0 to 1.
    void show_colours();
    /// What a channel has where nothing is: 0 after it is normalised.
    float blank(std::int64_t channel) const;
    /// The mean and the standard deviation of a channel; 0 and 1 where it was not normalised.
    float mean(std::int64_t channel) const { return of_channel(form_.mean, channel, 0); }
    float deviation(std::int64_t channel) const { return of_channel(form_.std, channel, 1); }
    /// Normalises again, and puts the input back as it is stored.
    std::span<float> stored();
    /// The same, and the target.
    void finish();

  private:
    static float of_channel(std::vector<double> const& values, std::int64_t channel, float none) {
        return values.empty()
                   ? none
                   : static_cast<float>(
                         values[values.size() == 1 ? 0 : static_cast<std::size_t>(channel)]);
    }
    /// Replaces each value by change(value, mean, standard deviation) of its channel.
    template <class Function>
    void change_values(Function change);
    void normalise();

    SampleForm const& form_;
    Grid<float> input_;
    SampleBuffers& buffers_;
    bool shows_colours_ = false;
};

} // namespace lockstep::data
