#include "step/compute_check.hpp"

#include "base/hash.hpp"
#include "base/recorder.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "step/computed_wrongly.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace lockstep::train {

namespace {

/// Sums of so large numbers are exact.
constexpr std::uint64_t terms = std::uint64_t{1} << 52;

/// The first value that is not the same, and its place.
template <class Value>
std::size_t first_difference(std::vector<std::byte> const& one,
                             std::vector<std::byte> const& other) {
    std::size_t at = 0;
    while ((at + 1) * sizeof(Value) < one.size() &&
           std::memcmp(&one[at * sizeof(Value)], &other[at * sizeof(Value)], sizeof(Value)) == 0) {
        ++at;
    }
    return at;
}

template <class Value>
std::string value_text(std::vector<std::byte> const& bytes, std::size_t at) {
    Value value{};
    std::uint64_t bits = 0;
    std::memcpy(&value, &bytes[at * sizeof(Value)], sizeof(Value));
    std::memcpy(&bits, &bytes[at * sizeof(Value)], sizeof(Value));
    constexpr int digits = std::numeric_limits<Value>::max_digits10;
    auto const text = significant(static_cast<double>(value), digits);
    // Two of these may look alike: signed zeros, and what is flushed to zero, or not a number.
    bool const is_plain = std::isnormal(value);
    return is_plain ? text : concat(text, " (bits ", hex(bits), ")");
}

} // namespace

void ComputeCheck::begin(Due const& due, LocalStep& local) {
    checked_ = parts_.rotation.at(due.number);
    std::ranges::copy(parts_.buffers.bytes(), start_.bytes().begin());
    own_ = {};
    if (parts_.world.rank() == checked_.owner) {
        local.keep(checked_.replica);
    }
}

double ComputeCheck::compare(Due const& due, LocalStep& local) {
    auto const rank = parts_.world.rank();
    if (rank != checked_.owner && rank != checked_.second) {
        return 0;
    }
    Scope const scope("comparing what hosts compute", checked_.replica);
    if (rank == checked_.owner) {
        take(local.take_kept());
    } else {
        take(local.repeat(checked_.replica, start_, *due.batches(checked_.replica)));
    }
    auto const parts = hashes();
    auto const hash = hash64(std::as_bytes(std::span(parts)));
    auto const term = static_cast<double>(hash % terms);
    return rank == checked_.owner ? term : -term;
}

void ComputeCheck::take(ReplicaPass pass) {
    own_ = std::move(pass);
    own_.gradient = own_.gradient.cpu();
    own_.buffers = own_.buffers.cpu();
}

/// Entry by entry, since what lies between them is nobody's, then the buffers, loss and weight;
/// nothing where this rank has not computed.
std::vector<std::span<std::byte const>> ComputeCheck::bytes() const {
    std::vector<std::span<std::byte const>> parts;
    if (!own_.gradient.defined()) {
        return parts;
    }
    auto const values = std::as_bytes(std::span(own_.gradient.const_data_ptr<float>(),
                                                static_cast<std::size_t>(own_.gradient.numel())));
    for (auto const& entry : parts_.layout.entries) {
        parts.push_back(values.subspan(static_cast<std::size_t>(entry.first) * sizeof(float),
                                       static_cast<std::size_t>(entry.count) * sizeof(float)));
    }
    parts.push_back(std::as_bytes(std::span(own_.buffers.const_data_ptr<std::uint8_t>(),
                                            static_cast<std::size_t>(own_.buffers.numel()))));
    parts.push_back(std::as_bytes(std::span(&own_.loss_sum, 1)));
    parts.push_back(std::as_bytes(std::span(&own_.weight, 1)));
    return parts;
}

std::vector<std::uint64_t> ComputeCheck::hashes() const {
    std::vector<std::uint64_t> hashes;
    for (auto const& part : bytes()) {
        hashes.push_back(hash64(part));
    }
    return hashes;
}

/// Sends the first part that differs from both ranks to all.
ComputeCheck::Found ComputeCheck::find(std::vector<std::uint64_t> const& owner,
                                       std::vector<std::uint64_t> const& second) const {
    auto const at =
        static_cast<std::size_t>(std::ranges::mismatch(owner, second).in1 - owner.begin());
    auto const own = bytes();
    auto const of_rank = [&](int rank) {
        auto size = own.empty() ? std::uint64_t{0} : std::uint64_t{own[at].size()};
        comm::broadcast(parts_.world, std::span(&size, 1), rank);
        std::vector<std::byte> sent(size);
        if (parts_.world.rank() == rank) {
            sent.assign(own[at].begin(), own[at].end());
        }
        comm::broadcast(parts_.world, std::span(sent), rank);
        return sent;
    };
    auto const owners = of_rank(checked_.owner);
    auto const seconds = of_rank(checked_.second);
    auto const entries = parts_.layout.entries.size();
    if (at < entries) {
        auto const element = first_difference<float>(owners, seconds);
        return {.where =
                    concat("the gradient of ", parts_.layout.entries[at].name, "[", element, "]"),
                .owners = value_text<float>(owners, element),
                .seconds = value_text<float>(seconds, element)};
    }
    if (at == entries) {
        auto const element = first_difference<std::uint8_t>(owners, seconds);
        return {.where = concat("byte ", element, " of the buffers"),
                .owners = std::to_string(std::to_integer<int>(owners[element])),
                .seconds = std::to_string(std::to_integer<int>(seconds[element]))};
    }
    return {.where = at == entries + 1 ? "the loss" : "the loss's weight",
            .owners = value_text<double>(owners, 0),
            .seconds = value_text<double>(seconds, 0)};
}

void ComputeCheck::convict(Due const& due, LocalStep& local, std::int64_t step) {
    auto const rank = parts_.world.rank();
    comm::agree(parts_.world, concat("computing a replica of step ", step, " once more"), [&] {
        if (rank == checked_.third) {
            take(local.repeat(checked_.replica, start_, *due.batches(checked_.replica)));
        }
    });
    auto const own = hashes();
    auto const of_rank = [&](int from) {
        auto sent = own;
        sent.resize(parts_.layout.entries.size() + 3);
        comm::broadcast(parts_.world, std::span(sent), from);
        return sent;
    };
    auto const owner = of_rank(checked_.owner);
    auto const second = of_rank(checked_.second);
    auto const third = checked_.third < 0 ? std::vector<std::uint64_t>() : of_rank(checked_.third);
    auto const found = find(owner, second);
    auto const host = [&](int of) { return parts_.host_of_rank[static_cast<std::size_t>(of)]; };
    auto const at_step = concat(" in training at step ", step);
    if (third == owner || third == second) {
        bool const is_owner = third == second;
        auto const wrong = is_owner ? checked_.owner : checked_.second;
        auto const right = is_owner ? checked_.second : checked_.owner;
        throw ComputedWrongly(
            AgreedError(ExitCode::rank_lost,
                        {concat("this host computes wrongly (", found.where, " of replica ",
                                checked_.replica, " is ", is_owner ? found.owners : found.seconds,
                                ", where ", host(right), " and ", host(checked_.third), " have ",
                                is_owner ? found.seconds : found.owners, ")"),
                         "a processor or a memory of this host is faulty, or the host has read "
                         "other samples",
                         "Leave this host out, as lockstep launch does, and test the host"},
                        wrong, concat(comm::place_of_rank(parts_.world, wrong), at_step)),
            {wrong});
    }
    auto const one = comm::place_of_rank(parts_.world, checked_.owner);
    auto const other = comm::place_of_rank(parts_.world, checked_.second);
    throw ComputedWrongly(
        AgreedError(ExitCode::rank_lost,
                    {concat("two ranks compute differently (", found.where, " of replica ",
                            checked_.replica, " is ", found.owners, " on ", one, " and ",
                            found.seconds, " on ", other, ")"),
                     third.empty() ? "one of them computes wrongly, but two cannot decide which "
                                     "one it is"
                                   : concat("a third rank on ", host(checked_.third),
                                            " has computed something else again, so that nobody "
                                            "can decide who computes wrongly"),
                     third.empty() ? "Test the processors and memories of both. On three hosts or "
                                     "more, the third one decides"
                                   : "Test the processors and memories of these hosts. If all are "
                                     "sound, the model is not deterministic: set "
                                     "check.compute-every = 0"},
                    checked_.owner, concat("the run", at_step)),
        {checked_.owner, checked_.second});
}

} // namespace lockstep::train
