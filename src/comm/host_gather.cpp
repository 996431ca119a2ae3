#include "host_gather.hpp"

#include <algorithm>

#include "pending.hpp"

namespace lockstep::comm {

HostGather::HostGather(Setup const& parts) : parts_(parts) {
    if (parts_.wire != nullptr) {
        count_sends();
    }
}

/// The same in each step.
void HostGather::count_sends() {
    for (auto const& slots : parts_.slots.receives) {
        for (auto const& slot : slots) {
            for (int bucket = 0; bucket < parts_.partition.buckets(); ++bucket) {
                auto const values = count(slot, bucket);
                bytes_ += static_cast<std::int64_t>(values * sizeof(float));
                messages_ += values > 0 ? 1 : 0; // nor is an empty one awaited
            }
        }
    }
}

std::size_t HostGather::count(Slot const& slot, int bucket) const {
    std::size_t count = 0;
    for_each_shard(slot, bucket,
                   [&](Range shard) { count += static_cast<std::size_t>(shard.count()); });
    return count;
}

/// A message of the way back: one shard where it lies, or the room in which several are put
/// together.
std::span<float> HostGather::part(Slot const& slot, int bucket) const {
    auto const& owners = slot.message->owners;
    auto* const values =
        owners.size() == 1
            ? array_ + parts_.partition.shard(bucket, owners.front()).first
            : parts_.slots.buffers->values.data() + static_cast<std::ptrdiff_t>(slot.first(bucket));
    return {values, count(slot, bucket)};
}

void HostGather::begin(float* array) {
    array_ = array;
    finished_ = 0;
    auto const places = static_cast<std::size_t>(parts_.partition.buckets());
    sent_.assign(places, 0);
    taken_.assign(places, 0);
    leaving_ = parts_.wire->flight(parts_.slots.buffers);
    arriving_.clear();
    for (int place = 0; place < parts_.partition.buckets(); ++place) {
        post(place);
    }
    advance();
}

void HostGather::post(int place) {
    auto const bucket = bucket_at(place);
    for (auto stage = stages(); stage > 0; --stage) {
        auto& flight = *arriving_.emplace_back(parts_.wire->flight(parts_.slots.buffers));
        for (auto const& slot : parts_.slots.sends[stage - 1]) {
            if (auto const into = part(slot, bucket); !into.empty()) {
                flight.receive(slot.message->partner, 2 * slot.message->tag + 1,
                               std::as_writable_bytes(into));
            }
        }
    }
}

void HostGather::advance() {
    for (int place = finished_; place < parts_.partition.buckets(); ++place) {
        while (send_next(place) && take_next(place)) {
        }
    }
    while (finished_ < parts_.partition.buckets() &&
           taken_[static_cast<std::size_t>(finished_)] == stages()) {
        ++finished_;
    }
}

/// Whether the messages of a bucket's next stage have left. Those of a stage leave in the order in
/// which they are awaited.
bool HostGather::send_next(int place) {
    auto const at = static_cast<std::size_t>(place);
    auto const stage = taken_[at];
    if (sent_[at] > stage) {
        return true;
    }
    if (stage == stages() || (place > 0 && sent_[at - 1] <= stage)) {
        return false;
    }
    send(stages() - 1 - stage, bucket_at(place));
    ++sent_[at];
    return true;
}

/// Whether all of a bucket's next stage is there.
bool HostGather::take_next(int place) {
    auto const at = static_cast<std::size_t>(place);
    auto const stage = taken_[at];
    if (!arriving_[at * stages() + stage]->done()) {
        return false;
    }
    take(stages() - 1 - stage, bucket_at(place));
    ++taken_[at];
    return true;
}

void HostGather::send(std::size_t stage, int bucket) {
    for (auto const& slot : parts_.slots.receives[stage]) {
        auto const values = part(slot, bucket);
        if (slot.message->owners.size() > 1) {
            for_each_shard(slot, bucket, [&, into = values.begin()](Range shard) mutable {
                into = std::copy(array_ + shard.first, array_ + shard.last, into);
            });
        }
        if (!values.empty()) {
            leaving_->send(slot.message->partner, 2 * slot.message->tag + 1, std::as_bytes(values));
        }
    }
}

void HostGather::take(std::size_t stage, int bucket) {
    for (auto const& slot : parts_.slots.sends[stage]) {
        if (slot.message->owners.size() > 1) {
            auto const* from = part(slot, bucket).data();
            for_each_shard(slot, bucket, [&](Range shard) {
                std::copy(from, from + shard.count(), array_ + shard.first);
                from += shard.count();
            });
        }
    }
}

bool HostGather::is_done() {
    return finished_ == parts_.partition.buckets() && leaving_->done();
}

void HostGather::wait(double timeout_seconds) {
    Backoff backoff(timeout_seconds, "gradients or parameters from other ranks",
                    parts_.wire->longest_pause_s());
    while (!is_done()) {
        parts_.wire->progress();
        advance();
        backoff.pause();
    }
}

/// The shards that a slot's message carries back.
template <class Action>
void HostGather::for_each_shard(Slot const& slot, int bucket, Action&& action) const {
    for (int const owner : slot.message->owners) {
        action(parts_.partition.shard(bucket, owner));
    }
}

} // namespace lockstep::comm
