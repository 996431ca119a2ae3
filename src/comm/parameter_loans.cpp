#include "parameter_loans.hpp"

#include "base/expects.hpp"

#include <algorithm>
#include <utility>

#include "pending.hpp"

namespace lockstep::comm {

namespace {

constexpr int loan_request_tag = 0;
constexpr int loan_answer_tag = 1;

template <class T>
std::span<std::byte> bytes_of(T& value) {
    return std::as_writable_bytes(std::span(&value, 1));
}

} // namespace

ParameterLoans::ParameterLoans(Setup const& parts)
    : parts_(parts), host_(parts.hosts.host(parts.rank)),
      foreign_(static_cast<std::size_t>(parts.partition.buckets())),
      own_(foreign_.size(), Own::none) {
    auto const& hosts = parts_.hosts;
    for (int bucket = 0; bucket < parts_.partition.buckets(); ++bucket) {
        auto& ranges = foreign_[static_cast<std::size_t>(bucket)];
        for (int owner = 0; owner < parts_.partition.ranks(); ++owner) {
            auto const range = parts_.partition.shard(bucket, owner);
            if (hosts.host(owner) == host_) {
                parts_.memory.populate(parts_.memory.parameters(0) + range.first, range.count());
            } else if (!ranges.empty() && ranges.back().last == range.first) {
                ranges.back().last = range.last;
            } else if (range.count() > 0) {
                ranges.push_back(range);
            }
        }
    }
    for (int host = 0; host < hosts.count(); ++host) {
        for (int const rank : ranks_of(host)) {
            if (host != host_ && hosts.delegate(host_, rank) == parts_.rank) {
                auto& asker = askers_.emplace_back();
                asker.rank = rank;
                listen(asker);
            }
        }
    }
}

ParameterLoans::~ParameterLoans() = default;

std::span<float> ParameterLoans::shard(int bucket, int owner) const {
    auto const range = parts_.partition.shard(bucket, owner);
    return {parts_.memory.parameters(0) + range.first, static_cast<std::size_t>(range.count())};
}

void ParameterLoans::listen(Asker& asker) {
    asker.incoming = std::make_shared<Request>();
    asker.flight = parts_.wire.flight(asker.incoming);
    asker.flight->receive(asker.rank, loan_request_tag, bytes_of(*asker.incoming));
}

void ParameterLoans::publish() {
    expects(std::ranges::all_of(own_, [](Own own) { return own == Own::none; }),
            "what was lent is given back before the next parameters");
    ++version_;
    parts_.arrivals.arrive();
    published_ = parts_.arrivals.count();
}

/// Operators run on after an error here, since LibTorch lets none out of what it tells of them.
void ParameterLoans::lend(int index) {
    auto& own = own_[static_cast<std::size_t>(index)];
    try {
        if (own == Own::none) {
            wait_until([&] { return is_published() && try_take(index); });
        }
        wait_until([&] { return own == Own::held; });
    } catch (...) {
        parts_.memory.replace_parameters();
        failure_ = std::current_exception();
        throw;
    }
}

void ParameterLoans::require() const {
    if (failure_) {
        std::rethrow_exception(failure_);
    }
}

void ParameterLoans::ask(int index) {
    if (own_[static_cast<std::size_t>(index)] == Own::none && is_published()) {
        try_take(index);
    }
}

/// Whether this rank has the bucket now, or fetches it for the host.
bool ParameterLoans::try_take(int bucket) {
    auto& place = loan(bucket);
    auto& own = own_[static_cast<std::size_t>(bucket)];
    auto const state = place.load();
    if (state.phase == Loan::Phase::present && state.version == version_) {
        auto joined = state;
        ++joined.users;
        if (place.change(state, joined)) {
            own = Own::held;
        }
    } else if (state.phase == Loan::Phase::absent &&
               place.change(state, {Loan::Phase::busy, 1, version_})) {
        own = Own::fetching;
        fetch(bucket);
    }
    return own != Own::none;
}

void ParameterLoans::fetch(int bucket) {
    auto const range = parts_.partition.bucket(bucket);
    parts_.memory.populate(parts_.memory.parameters(0) + range.first, range.count());
    struct Held {
        HostMemory memory;
        Request request;
    };
    auto const held =
        std::make_shared<Held>(Held{parts_.memory, {static_cast<std::int32_t>(bucket), version_}});
    auto flight = parts_.wire.flight(held);
    for (int host = 0; host < parts_.hosts.count(); ++host) {
        if (host == host_) {
            continue;
        }
        auto const partner = parts_.hosts.delegate(host, parts_.rank);
        bool asks = false;
        for (int const owner : ranks_of(host)) {
            if (auto const values = shard(bucket, owner); !values.empty()) {
                flight->receive(partner, loan_answer_tag, std::as_writable_bytes(values));
                asks = true;
            }
        }
        if (asks) {
            flight->send(partner, loan_request_tag, bytes_of(held->request));
        }
    }
    fetches_.push_back({bucket, std::move(flight)});
}

void ParameterLoans::answer(Asker& asker, Request const& request) {
    expects(request.version == version_, "parameters are asked for in the step that reads them");
    auto& flight = leaving_.emplace_back(parts_.wire.flight(parts_.memory.block()));
    for (int const owner : own_ranks()) {
        if (auto const values = shard(request.bucket, owner); !values.empty()) {
            flight->send(asker.rank, loan_answer_tag, std::as_bytes(values));
            bytes_ += static_cast<std::int64_t>(values.size_bytes());
            ++messages_;
        }
    }
}

void ParameterLoans::progress() {
    parts_.wire.progress();
    for (auto& asker : askers_) {
        while (asker.flight->done()) {
            asker.waiting.push_back(*asker.incoming);
            listen(asker);
        }
        while (!asker.waiting.empty() && asker.waiting.front().version == version_ &&
               is_published()) {
            answer(asker, asker.waiting.front());
            asker.waiting.pop_front();
        }
    }
    std::erase_if(fetches_, [&](Fetch& fetch) {
        bool const done = fetch.flight->done();
        if (done) {
            own_[static_cast<std::size_t>(fetch.bucket)] = Own::held;
            auto& place = loan(fetch.bucket);
            place.change(place.load(), {Loan::Phase::present, 1, version_});
        }
        return done;
    });
    std::erase_if(leaving_, [](auto const& flight) { return flight->done(); });
}

/// The last user takes its memory away; meanwhile nobody else can have it.
void ParameterLoans::give_back(int index) {
    auto& own = own_[static_cast<std::size_t>(index)];
    wait_until([&] { return own != Own::fetching; });
    auto& place = loan(index);
    while (own == Own::held) {
        auto const state = place.load();
        if (state.users > 1) {
            auto left = state;
            --left.users;
            own = place.change(state, left) ? Own::none : Own::held;
        } else if (place.change(state, {Loan::Phase::busy, 1, state.version})) {
            for (auto const& range : foreign_[static_cast<std::size_t>(index)]) {
                parts_.memory.discard(parts_.memory.parameters(0) + range.first, range.count());
            }
            place.change(place.load(), {});
            own = Own::none;
        }
    }
}

void ParameterLoans::give_back_all() {
    for (int bucket = 0; bucket < parts_.partition.buckets(); ++bucket) {
        give_back(bucket);
    }
}

void ParameterLoans::wait_sent() {
    wait_until([&] { return leaving_.empty(); });
}

void ParameterLoans::meet() {
    wait_until([&] { return fetches_.empty(); });
    auto const here = std::make_shared<double>(0);
    auto const flight = parts_.wire.flight(here);
    flight->minimum(*here);
    wait_until([&] { return flight->done(); });
}

std::int64_t ParameterLoans::take_bytes() noexcept {
    return std::exchange(bytes_, 0);
}

std::int64_t ParameterLoans::take_messages() noexcept {
    return std::exchange(messages_, 0);
}

/// Messages move only while MPI is called: no sleep on an arrival here.
template <class Condition>
void ParameterLoans::wait_until(Condition const& condition) {
    if (condition()) {
        return;
    }
    Backoff backoff(parts_.timeout_seconds, "parameters from other ranks",
                    parts_.wire.longest_pause_s());
    while (true) {
        progress();
        if (condition()) {
            return;
        }
        backoff.pause();
    }
}

} // namespace lockstep::comm
