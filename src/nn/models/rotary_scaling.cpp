#include "rotary_scaling.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace lockstep::nn {

namespace {

Error no_scaling(std::string const& text, std::string const& why) {
    return {ExitCode::usage,
            {concat("model.rotary-scaling = ", text), why,
             "Write none, linear FACTOR, or llama3 FACTOR LOW HIGH CONTEXT, such as "
             "llama3 8 1 4 8192"}};
}

/// The numbers after the first word.
std::vector<double> numbers_of(std::string const& text, std::vector<std::string> const& words) {
    std::vector<double> numbers;
    for (std::size_t i = 1; i < words.size(); ++i) {
        auto const number = number_of<double>(words[i]);
        if (!number || !std::isfinite(*number)) {
            throw no_scaling(text, concat(words[i], " is not a number"));
        }
        numbers.push_back(*number);
    }
    return numbers;
}

} // namespace

RotaryScaling RotaryScaling::of(std::string const& text) {
    auto words = split(text, ' ');
    std::erase(words, "");
    auto const numbers = numbers_of(text, words);
    auto const is = [&](char const* name, std::size_t count) {
        return !words.empty() && words.front() == name && numbers.size() == count;
    };
    RotaryScaling made;
    if (is("linear", 1)) {
        made = {Kind::linear, numbers[0]};
    } else if (is("llama3", 4)) {
        made = {Kind::llama3, numbers[0], numbers[1], numbers[2], numbers[3]};
        if (made.low <= 0 || made.high <= made.low) {
            throw no_scaling(text, "LOW must be above 0, and HIGH above LOW");
        }
        if (made.context < 1) {
            throw no_scaling(text, "CONTEXT must be at least 1");
        }
    } else if (!is("none", 0)) {
        throw no_scaling(text, "expected none, linear and 1 number, or llama3 and 4 numbers");
    }
    if (made.factor < 1) {
        throw no_scaling(text, "FACTOR must be at least 1");
    }
    return made;
}

torch::Tensor RotaryScaling::scaled(torch::Tensor const& frequencies) const {
    switch (kind) {
    case Kind::none:
        return frequencies;
    case Kind::linear:
        return frequencies / factor;
    case Kind::llama3:
        break;
    }
    auto const waves = frequencies * (context / (2 * std::numbers::pi));
    auto const kept = ((waves - low) / (high - low)).clamp(0, 1); // between low and high: a part
    return frequencies * (kept + (1 - kept) / factor);
}

} // namespace lockstep::nn
