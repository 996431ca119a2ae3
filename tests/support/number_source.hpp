#pragma once

#include "import/source.hpp"
#include "lockstep/base/error.hpp"

#include <functional>
#include <string>

namespace lockstep::test {

/// Item i gives i % 3 samples of one float, i, with i % 4 rows of another field that hold i, and
/// label i % 10 < 8 ? 0 : 1. Items of one group follow each other.
class NumberSource : public import::ImportSource {
  public:
    explicit NumberSource(std::int64_t items, std::int64_t per_group = 1)
        : items_(items), per_group_(per_group) {
        form_.fields = {{"inputs", h5::Type::f32, {1}},
                        {"targets", h5::Type::i64, {}},
                        {"steps", h5::Type::i64, {2}, true}};
        form_.class_names = {"common", "rare"};
        form_.moments = import::ImportForm::Moments::one;
    }

    std::string identity() const override { return "numbers " + std::to_string(items_); }
    import::ImportForm const& form() const override { return form_;
} std::int64_t items() const override {
    return items_;
}
std::string name(std::int64_t item) const override {
    return std::to_string(item);
}
std::int64_t label(std::int64_t item) const override {
    return item % 10 < 8 ? 0 : 1;
}
std::string group(std::int64_t item) const override {
    return std::to_string(item / per_group_);
}
std::int64_t items_at_once() const override {
    return 7;
}
std::string read(std::int64_t item,
                 std::function<void(import::Sample&&)> const& sink) const override {
    before_read(item);
    for (std::int64_t i = 0; i < item % 3; ++i) {
        auto const rows = static_cast<std::size_t>(item % 4);
        sink({{import::bytes_of(std::vector{static_cast<float>(item)}),
               import::bytes_of(std::vector{label(item)}),
               import::bytes_of(std::vector<std::int64_t>(2 * rows, item))},
              label(item)});
    }
    return item % 5 == 0 ? "a fifth" : "";
}

std::function<void(std::int64_t)> before_read = [](std::int64_t) {};

private:
std::int64_t items_;
std::int64_t per_group_;
import::ImportForm form_;
}; // namespace lockstep::test

} // namespace lockstep::test
