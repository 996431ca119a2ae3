#pragma once

#include "checkpoint/record.hpp"
#include "checkpoint/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::test {

/// A small training state, and a rank's part of it. The ranks' parts are of unequal size, and
/// rank 1 has none.
struct State {
    explicit State(std::size_t size = 1500) : parameters(size), moments(size), counters{7, 8, 9} {
        for (std::size_t i = 0; i < size; ++i) {
            parameters[i] = 0.25F * static_cast<float>(i) - 3.0F;
            moments[i] = static_cast<double>(i) * 1e-3;
        }
        record.integers = {{"step", 1200}, {"epoch", 3}, {"seed", -5}};
        record.reals = {{"best_metric", 0.1}, {"loss_scale", 65536.0}};
        record.history = "{\"event\":\"step\"}\n{\"event\":\"epoch\"}\n";
        record.deck = "[run]\nname = small\n";
        record.notes = {{"time", "2026-01-31T12:00:00.123Z"}, {"hosts", "a b"}};
    }

    checkpoint::Snapshot snapshot(int rank = 0, int ranks = 1) const {
        checkpoint::Snapshot snapshot;
        snapshot.arrays = {{"state/parameters", h5::Type::f32, parameters.size()},
                           {"state/moments", h5::Type::f64, moments.size()},
                           {"state/counters", h5::Type::i64, counters.size()},
                           {"state/nothing", h5::Type::f32, 0}};
        snapshot.views = {{"model/conv1/weight", "state/parameters", 0, {8, 5, 4}},
                          {"model/conv1/bias", "state/parameters", 160, {8}},
                          {"model/norm/batches", "state/counters", 2, {}}};
        snapshot.parts = {parts(parameters, rank, ranks),
                          parts(moments, rank, ranks),
                          parts(counters, rank, ranks),
                          {}};
        snapshot.record = record;
        return snapshot;
    }

    std::vector<float> parameters;
    std::vector<double> moments;
    std::vector<std::int64_t> counters;
    checkpoint::Record record;

  private:
    /// Rank 0 holds a third of what there is, rank 1 nothing, the others the rest in even shares.
    static std::pair<std::size_t, std::size_t> bounds(std::size_t size, int rank, int ranks) {
        auto const third = size / 3;
        auto const others = static_cast<std::size_t>(ranks - 2);
        if (ranks == 1) {
            return {0, size};
        }
        if (ranks == 2) {
            return rank == 0 ? std::pair(std::size_t{0}, size) : std::pair(size, size);
        }
        if (rank < 2) {
            return rank == 0 ? std::pair(std::size_t{0}, third) : std::pair(third, third);
        }
        auto const place = static_cast<std::size_t>(rank - 2);
        return {third + (size - third) * place / others,
                third + (size - third) * (place + 1) / others};
    }

    template <class T>
    static std::vector<checkpoint::Part> parts(std::vector<T> const& values, int rank, int ranks) {
        auto const [first, end] = bounds(values.size(), rank, ranks);
        auto const all = std::as_bytes(std::span(values).subspan(first, end - first));
        // Ranks have unequal numbers of extents.
        auto const cut = rank == 0 && end - first > 2 ? 2 * sizeof(T) : 0;
        if (cut == 0) {
            return {{first, all}};
        }
        return {{first, all.first(cut)}, {first + 2, all.subspan(cut)}};
    }
};

/// An array of a checkpoint, read whole.
template <class T, class Reader>
std::vector<T> read_whole(Reader const& reader, std::string const& array) {
    std::vector<T> values(reader.array(array).elements);
    reader.read(array, 0, std::as_writable_bytes(std::span(values)));
    return values;
}

} // namespace lockstep::test
