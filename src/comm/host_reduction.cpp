#include "host_reduction.hpp"

#include <algorithm>

namespace lockstep::comm {

HostReduction::HostReduction(Setup parts)
    : wire_(parts.wire), options_(parts.options), hosts_(parts.hosts),
      schedule_(std::move(parts.schedule)), memory_(std::move(parts.memory)), rank_(parts.rank) {
    if (wire_ == nullptr) {
        return;
    }
    std::int64_t values = 0;
    slots_.sends = slots_of(&HostSchedule::Stage::sends, values);
    slots_.receives = slots_of(&HostSchedule::Stage::receives, values);
    slots_.buffers = std::make_shared<HostSlots::Buffers>(memory_, static_cast<std::size_t>(values),
                                                          rounds(), options_.shards_gradients);
    for (auto const& stage : schedule_.stages()) {
        sums_.emplace_back(stage.node, stage.children, options_.rounding);
    }
    auto const buckets = static_cast<std::size_t>(options_.partition.buckets());
    sent_.resize(buckets);
    added_.resize(buckets);
}

/// One after the other, from `end` on.
std::vector<std::vector<HostReduction::Slot>>
HostReduction::slots_of(std::vector<HostSchedule::Message> HostSchedule::Stage::*messages,
                        std::int64_t& end) const {
    std::vector<std::vector<Slot>> all;
    for (auto const& stage : schedule_.stages()) {
        auto& slots = all.emplace_back();
        for (auto const& message : stage.*messages) {
            bool const no_room = messages == &HostSchedule::Stage::sends && in_place(message);
            auto at = no_room ? 0 : end;
            auto& slot = slots.emplace_back(Slot{&message, {at}});
            for (int bucket = 0; bucket < options_.partition.buckets(); ++bucket) {
                for (auto const& entry : message.entries) {
                    at += count_of(bucket, entry.owner);
                }
                slot.bounds.push_back(at);
            }
            end = no_room ? end : at;
        }
    }
    return all;
}

/// Where this host's part of a sum has an owner's shard.
float* HostReduction::own(int home, int bucket, int owner) const {
    return memory_.gradients(hosts_.local(home)) + options_.partition.shard(bucket, owner).first;
}

/// What a message of the way to the sums carries, in its slot.
std::span<std::byte> HostReduction::carried(Slot const& slot, int bucket) const {
    auto const first = slot.first(bucket);
    auto const count = slot.count(bucket);
    auto& buffers = *slots_.buffers;
    return rounds() ? std::as_writable_bytes(std::span(buffers.packed).subspan(first, count))
                    : std::as_writable_bytes(std::span(buffers.values).subspan(first, count));
}

void HostReduction::begin() {
    bytes_ = messages_ = 0;
    finished_ = 0;
    std::fill(sent_.begin(), sent_.end(), 0);
    std::fill(added_.begin(), added_.end(), 0);
    leaving_.clear();
    arriving_.clear();
    for (int bucket = 0; bucket < options_.partition.buckets(); ++bucket) {
        leaving_.push_back(wire_->flight(slots_.buffers));
        for (auto const& slots : slots_.receives) {
            auto& flight = *arriving_.emplace_back(wire_->flight(slots_.buffers));
            for (auto const& slot : slots) {
                if (auto const bytes = carried(slot, bucket); !bytes.empty()) {
                    flight.receive(slot.message->partner, 2 * slot.message->tag, bytes);
                }
            }
        }
    }
}

void HostReduction::advance(int buckets) {
    // What others wait for leaves before anything is looked at or added up here.
    for (int bucket = finished_; bucket < buckets; ++bucket) {
        send_next(bucket);
    }
    for (int bucket = finished_; bucket < buckets; ++bucket) {
        while (send_next(bucket) && add_next(bucket)) {
        }
    }
    while (finished_ < buckets &&
           added_[static_cast<std::size_t>(finished_)] == schedule_.stages().size()) {
        ++finished_;
    }
}

/// Whether the messages of a bucket's next stage have left. Those of a stage leave in the order of
/// buckets, as they are awaited.
bool HostReduction::send_next(int bucket) {
    auto const at = static_cast<std::size_t>(bucket);
    auto const stage = added_[at];
    if (sent_[at] > stage) {
        return true;
    }
    if (stage == schedule_.stages().size() || (bucket > 0 && sent_[at - 1] <= stage)) {
        return false;
    }
    send(stage, bucket);
    ++sent_[at];
    return true;
}

/// Whether the bucket's next stage is done now.
bool HostReduction::add_next(int bucket) {
    auto const at = static_cast<std::size_t>(bucket);
    auto const stage = added_[at];
    if (!arriving_[at * slots_.receives.size() + stage]->done()) {
        return false;
    }
    add(stage, bucket);
    ++added_[at];
    return true;
}

void HostReduction::send(std::size_t stage, int bucket) {
    auto const& homes = schedule_.stages()[stage].homes;
    for (auto const& slot : slots_.sends[stage]) {
        auto const& message = *slot.message;
        auto into = slot.first(bucket);
        std::span<std::byte const> bytes;
        for (auto const& entry : message.entries) {
            std::span const shard(
                own(homes[static_cast<std::size_t>(entry.child)], bucket, entry.owner),
                static_cast<std::size_t>(count_of(bucket, entry.owner)));
            if (in_place(message)) { // it stays there until the step's end
                bytes = std::as_bytes(shard);
            } else if (rounds()) {
                pack(options_.rounding, shard, slots_.buffers->packed.data() + into);
            } else {
                std::copy(shard.begin(), shard.end(), slots_.buffers->values.data() + into);
            }
            into += shard.size();
        }
        if (!in_place(message)) {
            bytes = carried(slot, bucket);
        }
        if (!bytes.empty()) { // nor is an empty one awaited
            leaving_[static_cast<std::size_t>(bucket)]->send(message.partner, 2 * message.tag,
                                                             bytes);
            bytes_ += static_cast<std::int64_t>(bytes.size());
            ++messages_;
        }
    }
}

void HostReduction::unpack(Slot const& slot, int bucket) {
    auto const first = slot.first(bucket);
    auto& buffers = *slots_.buffers;
    comm::unpack(options_.rounding, std::span(buffers.packed).subspan(first, slot.count(bucket)),
                 buffers.values.data() + first);
}

void HostReduction::add(std::size_t stage, int bucket) {
    auto const& plan = schedule_.stages()[stage];
    auto const children = plan.children.size();
    std::vector<float const*> sources;
    for (int const owner : plan.owners) {
        for (int const home : plan.homes) {
            sources.push_back(home < 0 ? nullptr : own(home, bucket, owner));
        }
    }
    for (auto const& slot : slots_.receives[stage]) {
        if (rounds()) {
            unpack(slot, bucket);
        }
        auto const* from = slots_.buffers->values.data() + slot.first(bucket);
        for (auto const& entry : slot.message->entries) {
            sources[static_cast<std::size_t>(entry.at) * children +
                    static_cast<std::size_t>(entry.child)] = from;
            from += count_of(bucket, entry.owner);
        }
    }
    bool const is_root = stage + 1 == schedule_.stages().size();
    for (std::size_t i = 0; i < plan.owners.size(); ++i) {
        auto const shard = options_.partition.shard(bucket, plan.owners[i]);
        if (shard.count() == 0) {
            continue;
        }
        auto const operands = std::span(sources).subspan(i * children, children);
        if (is_root) {
            sums_[stage].add(operands, memory_.destinations(hosts_.local(rank_), shard.first),
                             shard.count(), memory_.squares() + shard.first / reduction_block);
        } else {
            float* const into = own(plan.home, bucket, plan.owners[i]);
            sums_[stage].add(operands, std::span(&into, 1), shard.count());
        }
    }
    for (auto const& slot : slots_.receives[stage]) {
        if (options_.shards_gradients) {
            discard(slot, bucket);
        }
    }
}

void HostReduction::wait_sent() {
    for (auto const& flight : leaving_) {
        flight->wait(options_.timeout_seconds);
    }
    if (options_.shards_gradients && wire_ != nullptr) { // of messages that were put together
        auto const& buffers = *slots_.buffers;
        buffers.room.discard({buffers.room.data(), buffers.room.size()});
        buffers.packed_room.discard({buffers.packed_room.data(), buffers.packed_room.size()});
    }
}

/// Whether nothing of a bucket is read here any more.
bool HostReduction::is_done(int bucket) {
    return bucket < finished_ && leaving_[static_cast<std::size_t>(bucket)]->done();
}

/// A message that has been added up.
void HostReduction::discard(Slot const& slot, int bucket) {
    auto const carrying = carried(slot, bucket);
    (rounds() ? slots_.buffers->packed_room : slots_.buffers->room).discard(carrying);
}

} // namespace lockstep::comm
