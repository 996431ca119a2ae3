#include "data/augment/speed.hpp"

#include "data/augment/entry.hpp"
#include "data/augment/flip_shift.hpp"

#include <algorithm>
#include <type_traits>

namespace lockstep::data {

namespace {

class Speed : public Change {
  public:
    Speed(std::size_t axis, double low, double high) : axis_(axis), low_(low), high_(high) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        auto const factor = draws.between(low_, high_);
        auto const last = static_cast<double>(sample.input().extent(axis_) - 1);
        play_faster(sample, axis_, factor, draws.between(0, std::max(last - last * factor, 0.0)));
    }

  private:
    std::size_t axis_;
    double low_;
    double high_;
};

struct Pace {
    double factor;
    double start;
    bool nearest;
};

template <class Value>
void play_grid(Grid<Value>& grid, std::size_t axis, Pace const& pace, std::vector<Value>& work) {
    auto const inner = grid.stride(axis);
    auto const extent = grid.extent(axis);
    auto const values = grid.values();
    for (auto* first = values.data(); first != values.data() + values.size();
         first += extent * inner) {
        work.assign(first, first + extent * inner);
        for (std::int64_t i = 0; i < extent; ++i) {
            auto* const to = first + i * inner;
            auto const at = pace.start + static_cast<double>(i) * pace.factor;
            if (at > static_cast<double>(extent - 1)) {
                std::fill(to, to + inner, Value{});
                continue;
            }
            auto const low = static_cast<std::int64_t>(pace.nearest ? at + 0.5 : at);
            auto const* const one = work.data() + low * inner;
            if (std::is_integral_v<Value> || pace.nearest) {
                std::copy(one, one + inner, to);
                continue;
            }
            auto const* const other = work.data() + std::min(low + 1, extent - 1) * inner;
            auto const share = static_cast<Value>(at - static_cast<double>(low));
            for (std::int64_t k = 0; k < inner; ++k) {
                to[k] = one[k] * (1 - share) + other[k] * share;
            }
        }
    }
}

} // namespace

void play_faster(AugmentedSample& sample, std::size_t axis, double factor, double start) {
    sample.stored(); // 0 is what is blank once it is normalised
    play_grid(sample.input(), axis, {factor, start, false}, sample.buffers().work);
    auto const classes = sample.form().target && sample.form().target->classes;
    for_target_axis(sample, axis, [&](auto& target, std::size_t of_target) {
        auto& buffers = sample.buffers();
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(target)>, Grid<float>>) {
            play_grid(target, of_target, {factor, start, classes}, buffers.work);
        } else {
            play_grid(target, of_target, {factor, start, true}, buffers.class_work);
        }
    });
}

std::unique_ptr<Change> make_speed(Entry const& entry) {
    auto const axis = entry.time();
    auto const low = entry.number(0, 0.1, 10);
    auto const high = entry.number(1, 0.1, 10);
    entry.require_order(low, high);
    return std::make_unique<Speed>(axis, low, high);
}

} // namespace lockstep::data
