#include "lockstep/train/local_step.hpp"

#include "lockstep/base/clock.hpp"
#include "lockstep/base/random.hpp"

namespace lockstep::train {

LocalStep::LocalStep(Parts parts) : parts_(std::move(parts)) {
    for (int leaves = parts_.node.count; true; leaves = (leaves + 1) / 2) {
        levels_.push_back(parts_.arena.new_gradients());
        if (leaves == 1) {
            break;
        }
    }
    results_.resize(static_cast<std::size_t>(parts_.node.count));
}

torch::Tensor LocalStep::run(data::Loader& loader, int micro_batches, std::uint64_t step_key) {
    micro_batches_ = micro_batches;
    step_key_ = step_key;
    times_ = {};
    run_node(parts_.node, 0, loader);
    if (parts_.node.first == 0) {
        parts_.buffers.floats.copy_(new_floats_);
        parts_.buffers.integers.copy_(new_integers_);
    }
    return levels_[0];
}

void LocalStep::run_node(comm::TreeNode node, std::size_t depth, data::Loader& loader) {
    if (node.is_leaf()) {
        run_replica(node.first, levels_[depth], loader);
        return;
    }
    run_node(node.left(), depth, loader);
    run_node(node.right(), depth + 1, loader);
    torch::NoGradGuard const no_grad;
    levels_[depth].add_(levels_[depth + 1]);
}

void LocalStep::run_replica(int replica, torch::Tensor const& gradients, data::Loader& loader) {
    auto& result = results_[static_cast<std::size_t>(replica - parts_.node.first)];
    result = {};
    gradients.zero_();
    parts_.arena.bind_gradients(gradients);
    // Every replica starts a step from replica 0's buffers, as DDP's do, and keeps its own while
    // it accumulates.
    parts_.buffers.restore();
    for (int micro = 0; micro < micro_batches_; ++micro) {
        Stopwatch watch;
        auto const& batch = loader.next();
        times_.data += watch.restart();
        if (batch.indices.empty()) {
            continue;
        }
        parts_.model.set_random_key(mixed(mixed(step_key_ ^ static_cast<std::uint64_t>(replica)) ^
                                          static_cast<std::uint64_t>(micro)));
        auto const tensors = to_tensors(batch, parts_.sample_shape, parts_.device);
        auto const loss = parts_.task.training_loss(parts_.model, tensors);
        times_.forward += watch.restart();
        loss.sum.backward();
        result.loss_sum += loss.sum.item<double>();
        result.weight += loss.weight;
        result.correct += loss.correct;
        times_.backward += watch.restart();
    }
    if (replica == 0) {
        Buffers after(parts_.model);
        new_floats_ = after.floats;
        new_integers_ = after.integers;
    }
}

task::Tensors to_tensors(data::Batch const& batch, std::vector<std::int64_t> const& sample_shape,
                         torch::Device device) {
    auto const count = static_cast<std::int64_t>(batch.indices.size());
    auto shape = sample_shape;
    shape.insert(shape.begin(), count);
    // Copied, since torch's own blocks are aligned alike every time and sums depend on alignment.
    auto const borrow = [](auto const& values, torch::IntArrayRef sizes, torch::Dtype type) {
        return torch::from_blob(const_cast<void*>(static_cast<void const*>(values.data())), sizes,
                                torch::TensorOptions(type));
    };
    return {borrow(batch.inputs, shape, torch::kFloat32).to(device, torch::kFloat32, false, true),
            borrow(batch.targets, {count}, torch::kInt64).to(device, torch::kInt64, false, true)};
}

} // namespace lockstep::train
