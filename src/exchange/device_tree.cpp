#include "device_tree.hpp"

#include "comm/link_model.hpp"
#include "device/device_elements.hpp"

#include <c10/core/StreamGuard.h>
#include <torch/torch.h>

#include <algorithm>

namespace lockstep::train {

DeviceTree::DeviceTree(comm::DeviceCommunicator& devices, comm::Partition const& partition,
                       c10::Stream stream, Options const& options)
    : devices_(devices), partition_(partition), stream_(stream), rank_(options.rank) {
    auto const root = comm::root_of(options.nodes);
    auto const hosts = comm::filled_hosts(static_cast<int>(options.nodes.size()), 1);
    auto const partials = comm::partials_of(root, options.nodes, hosts);
    auto const shard_bytes = static_cast<double>(partition.bucket(0).count()) * sizeof(float) /
                             static_cast<double>(options.nodes.size());
    auto const route = options.route.value_or(
        comm::faster_route(root, partials, hosts, shard_bytes, comm::device_link).route);
    comm::HostSchedule const schedule(root, partials, hosts, options.rank, route);
    rounds_ = comm::rounds_of(root, partials, route);
    auto const message_of = [&](comm::HostSchedule::Message const& each) {
        Message message{
            each.partner, static_cast<std::size_t>(each.entries.front().child), each.owners, {}};
        std::int64_t max = 0;
        for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
            max = std::max(max, total(bucket, message));
        }
        message.packed =
            torch::empty({max}, torch::TensorOptions(torch::kFloat32).device(options.device));
        return message;
    };
    for (auto const& stage : schedule.stages()) {
        Step step;
        step.round = rounds_ - 1 - stage.depth;
        step.children = stage.children;
        step.home = static_cast<std::size_t>(
            std::find_if(stage.homes.begin(), stage.homes.end(), [](int at) { return at >= 0; }) -
            stage.homes.begin());
        std::transform(stage.sends.begin(), stage.sends.end(), std::back_inserter(step.sends),
                       message_of);
        std::transform(stage.receives.begin(), stage.receives.end(),
                       std::back_inserter(step.receives), message_of);
        steps_.push_back(std::move(step));
    }
}

std::vector<torch::Tensor> DeviceTree::shards(torch::Tensor const& values, int bucket,
                                              Message const& message) const {
    std::vector<torch::Tensor> all;
    for (int const owner : message.owners) {
        all.push_back(slice(values, partition_.shard(bucket, owner)));
    }
    return all;
}

/// The room for a message, of the values' type: sums may travel in 16 bits, parameters never do.
torch::Tensor DeviceTree::room(torch::Tensor const& values, int bucket,
                               Message const& message) const {
    return message.packed.view(values.scalar_type()).narrow(0, 0, total(bucket, message));
}

std::vector<torch::Tensor> DeviceTree::packed_shards(torch::Tensor const& values, int bucket,
                                                     Message const& message) const {
    auto const packed = room(values, bucket, message);
    std::vector<torch::Tensor> all;
    std::int64_t at = 0;
    for (int const owner : message.owners) {
        auto const count = partition_.shard(bucket, owner).count();
        all.push_back(packed.narrow(0, at, count));
        at += count;
    }
    return all;
}

std::int64_t DeviceTree::total(int bucket, Message const& message) const {
    std::int64_t elements = 0;
    for (int const owner : message.owners) {
        elements += partition_.shard(bucket, owner).count();
    }
    return elements;
}

/// A single shard is sent from where it is.
comm::DeviceView DeviceTree::sent(torch::Tensor const& values, int bucket,
                                  Message const& message) const {
    auto const from = shards(values, bucket, message);
    if (from.size() == 1) {
        return view_of(from.front());
    }
    auto packed = room(values, bucket, message);
    torch::cat_out(packed, from);
    return view_of(packed);
}

comm::DeviceSpan DeviceTree::received(torch::Tensor const& values, int bucket,
                                      Message const& message) const {
    auto const into = shards(values, bucket, message);
    return device_span_of(into.size() == 1 ? into.front() : room(values, bucket, message));
}

void DeviceTree::unpack(torch::Tensor const& values, int bucket, Message const& message) const {
    if (message.owners.size() > 1) {
        torch::_foreach_copy_(shards(values, bucket, message),
                              packed_shards(values, bucket, message));
    }
}

/// A sum of two is the same in either order: the rank's own values take the others in.
void DeviceTree::add_up(torch::Tensor const& values, int bucket, Step const& step) const {
    if (step.children.size() == 2) {
        for (auto const& message : step.receives) {
            torch::_foreach_add_(shards(values, bucket, message),
                                 packed_shards(values, bucket, message));
        }
        return;
    }
    // All of the tree at once, of the rank's own shard.
    auto const own = slice(values, partition_.shard(bucket, rank_));
    std::vector<torch::Tensor> parts(step.children.size());
    parts[step.home] = own;
    for (auto const& message : step.receives) {
        parts[message.child] = packed_shards(values, bucket, message).front();
    }
    auto const part = [&](int replica) -> torch::Tensor& {
        auto const child = std::find_if(step.children.begin(), step.children.end(),
                                        [&](comm::TreeNode node) { return node.first == replica; });
        return parts[static_cast<std::size_t>(child - step.children.begin())];
    };
    comm::sum_in_tree_order(
        {step.children.front().first,
         step.children.back().first + step.children.back().count - step.children.front().first},
        [&](comm::TreeNode node) {
            return std::find(step.children.begin(), step.children.end(), node) !=
                   step.children.end();
        },
        [&](int into, int from) {
            if (part(from).is_same(own)) {
                std::swap(part(into), part(from));
            }
            part(into).add_(part(from));
        });
}

DeviceTree::Step const* DeviceTree::step_of(int round) const {
    auto const found = std::find_if(steps_.begin(), steps_.end(),
                                    [&](Step const& step) { return step.round == round; });
    return found == steps_.end() ? nullptr : &*found;
}

/// One round of every bucket under way.
std::int64_t DeviceTree::advance(torch::Tensor const& values, bool back) {
    c10::StreamGuard const on_stream(stream_);
    std::vector<comm::DeviceMessage> messages;
    std::int64_t elements = 0;
    for (auto const& [bucket, round] : flights_) {
        auto const* const step = step_of(back ? rounds_ - 1 - round : round);
        if (step == nullptr) {
            continue; // this rank has no part in it
        }
        for (auto const& each : back ? step->receives : step->sends) {
            messages.push_back({each.peer, sent(values, bucket, each), {}});
            elements += total(bucket, each);
        }
        for (auto const& each : back ? step->sends : step->receives) {
            messages.push_back({each.peer,
                                {},
                                back ? received(values, bucket, each)
                                     : device_span_of(room(values, bucket, each))});
        }
    }
    if (!messages.empty()) {
        devices_.exchange(messages, stream_.native_handle());
    }
    for (auto& [bucket, round] : flights_) {
        auto const* const step = step_of(back ? rounds_ - 1 - round : round);
        ++round;
        if (step == nullptr) {
            continue;
        }
        if (!back) {
            add_up(values, bucket, *step);
            continue;
        }
        for (auto const& each : step->sends) {
            unpack(values, bucket, each);
        }
    }
    while (!flights_.empty() && flights_.front().round == rounds_) {
        flights_.pop_front();
    }
    return elements * values.element_size();
}

std::int64_t DeviceTree::sum(int bucket, torch::Tensor const& values) {
    flights_.push_back({bucket, 0});
    return advance(values, false);
}

std::int64_t DeviceTree::finish(torch::Tensor const& values) {
    std::int64_t bytes = 0;
    while (!flights_.empty()) {
        bytes += advance(values, false);
    }
    return bytes;
}

void DeviceTree::gather(torch::Tensor const& values) {
    for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
        flights_.push_back({bucket, 0});
        advance(values, true);
    }
    while (!flights_.empty()) {
        advance(values, true);
    }
}

} // namespace lockstep::train
