#include "host_messages.hpp"

#include <algorithm>

namespace lockstep::comm {

HostMessages::HostMessages(Parts const& parts)
    : world_(parts.world), partition_(parts.options.partition), hosts_(parts.hosts),
      partials_(parts.partials), rank_(parts.rank), host_(hosts_.host(rank_)),
      rounding_(parts.options.rounding), timeout_seconds_(parts.options.timeout_seconds),
      buffers_(std::make_shared<Buffers>(
          Buffers{parts.arena, std::vector<float>(static_cast<std::size_t>(elements_received()))})),
      sends_(buffers_) {
    if (rounds()) {
        buffers_->packed_received.resize(buffers_->received.size());
        buffers_->packed_sent.resize(static_cast<std::size_t>(elements_sent()));
    }
    float* at = buffers_->received.data();
    for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
        receives_.emplace_back(buffers_);
        auto& incoming = incoming_.emplace_back();
        for (auto const& partial : partials_) {
            bool const foreign = partial.host != host_;
            incoming.push_back(foreign ? at : nullptr);
            at += foreign ? partition_.shard(bucket, rank_).count() : 0;
        }
    }
}

/// In partials of other hosts, by this rank, in one step.
std::int64_t HostMessages::elements_received() const {
    auto const foreign = std::count_if(partials_.begin(), partials_.end(),
                                       [this](auto& each) { return each.host != host_; });
    std::int64_t own = 0;
    for (auto const& range : partition_.owned(rank_)) {
        own += range.count();
    }
    return foreign * own;
}

std::int64_t HostMessages::elements_sent() const {
    auto const own_partials = std::count_if(partials_.begin(), partials_.end(),
                                            [this](auto& each) { return each.host == host_; });
    std::int64_t elements = 0;
    for_each_taken([&](int owner, int bucket) {
        elements += partition_.shard(bucket, owner).count() * own_partials;
    });
    return elements;
}

/// Where the 16 bits of a received value lie.
std::uint16_t* HostMessages::packed(float const* received) {
    return buffers_->packed_received.data() + (received - buffers_->received.data());
}

void HostMessages::begin() {
    packed_until_ = 0;
    for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
        auto const at = static_cast<std::size_t>(bucket);
        auto const count = partition_.shard(bucket, rank_).count();
        for (std::size_t i = 0; i < partials_.size(); ++i) {
            auto* const into = incoming_[at][i];
            if (partials_[i].host == host_) {
                continue;
            }
            auto const from = hosts_.delegate(partials_[i].host, rank_);
            if (rounds()) {
                receives_[at].receive(*world_, from, packed(into), count);
            } else {
                receives_[at].receive(*world_, from, into, count);
            }
        }
    }
}

void HostMessages::unpack(int bucket) {
    auto const count = static_cast<std::size_t>(partition_.shard(bucket, rank_).count());
    for (auto* const into : incoming_[static_cast<std::size_t>(bucket)]) {
        if (rounds() && into != nullptr) {
            comm::unpack(rounding_, {packed(into), count}, into);
        }
    }
}

std::int64_t HostMessages::send(int owner, float const* values, std::int64_t count) {
    if (rounds()) {
        auto* const bits = buffers_->packed_sent.data() + packed_until_;
        pack(rounding_, {values, static_cast<std::size_t>(count)}, bits);
        packed_until_ += count;
        sends_.send(*world_, owner, bits, count);
        return 2 * count;
    }
    sends_.send(*world_, owner, values, count);
    return 4 * count;
}

void HostMessages::wait_sent() {
    sends_.wait(timeout_seconds_);
}

std::int64_t HostMessages::spread(float* array) {
    Pending receives(buffers_);
    for_each_taken([&](int owner, int bucket) {
        auto const shard = partition_.shard(bucket, owner);
        receives.receive(*world_, owner, array + shard.first, shard.count());
    });
    std::int64_t bytes = 0;
    for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
        auto const shard = partition_.shard(bucket, rank_);
        for (int host = 0; host < hosts_.count(); ++host) {
            if (host != host_) {
                sends_.send(*world_, hosts_.delegate(host, rank_), array + shard.first,
                            shard.count());
                bytes += static_cast<std::int64_t>(sizeof(float)) * shard.count();
            }
        }
    }
    receives.wait(timeout_seconds_);
    wait_sent();
    return bytes;
}

} // namespace lockstep::comm
