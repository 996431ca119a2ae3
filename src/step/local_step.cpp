#include "local_step.hpp"

#include "arena/arena.hpp"
#include "arena/buffers.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/recorder.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "comm/tree_sum.hpp"
#include "device/host_copies.hpp"
#include "step/batch_source.hpp"
#include "step/gradient_arrays.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "instance_threads.hpp"
#include "model_instance.hpp"

namespace lockstep::train {

namespace {

/// Adds entry by entry; sums that are empty begin at zero.
template <class Number>
void add_to(std::vector<Number>& sums, torch::Tensor const& more) {
    torch::Tensor const numbers = more.to(c10::CppTypeToScalarType<Number>::value).contiguous();
    std::span const values(numbers.const_data_ptr<Number>(),
                           static_cast<std::size_t>(numbers.numel()));
    sums.resize(values.size(), 0);
    std::ranges::transform(values, sums, sums.begin(), std::plus<>());
}

nn::Fields moved(nn::Fields const& fields, torch::Device device) {
    std::vector<nn::Field> there;
    for (auto const& field : fields) {
        there.push_back({field.values.to(device, /*non_blocking=*/true), field.lengths});
    }
    return nn::Fields(std::move(there));
}

} // namespace

LocalStep::LocalStep(Setup parts)
    : parts_(std::move(parts)),
      gradients_(borrowed(parts_.exchange.gradients(), parts_.layout.size, parts_.device)) {
    for (auto* const model : parts_.instances) {
        instances_.push_back(std::make_unique<ModelInstance>(
            ModelInstance::Setup{.model = *model,
                                 .device = parts_.device,
                                 .task = parts_.task,
                                 .layout = parts_.layout,
                                 .partition = parts_.exchange.partition(),
                                 .precision = parts_.precision,
                                 .clip = parts_.clip,
                                 .graphs = parts_.graphs.get(),
                                 .name = parts_.model,
                                 .calls_own_code = parts_.calls_own_code,
                                 .gate = parts_.gate}));
    }
    auto const replicas = static_cast<std::size_t>(parts_.node.count);
    bool const concurrent = instances_.size() > 1;
    if (concurrent) {
        threads_ = std::make_unique<InstanceThreads>(static_cast<int>(instances_.size()));
    }
    arrays_.push_back(gradients_);
    while (std::ssize(arrays_) < gradient_arrays(parts_.node.count, concurrent)) {
        auto const& instance = *instances_[threads_ ? arrays_.size() : 0];
        arrays_.push_back(
            torch::zeros_like(gradients_, gradients_.options().device(instance.device())));
    }
    results_.resize(replicas);
}

LocalStep::~LocalStep() = default;

void LocalStep::run(BatchSource& batches, int micro_batches, std::uint64_t step_key,
                    comm::GradientSum& sum, double loss_scale) {
    micro_batches_ = micro_batches;
    sum_ = &sum;
    step_key_ = step_key;
    loss_scale_ = loss_scale;
    times_ = {};
    for (auto const& instance : instances_) {
        instance->begin_step();
    }
    left_.clear(); // of a step that failed
    used_.assign(parts_.layout.entries.size(), 0);
    if (threads_) {
        run_on_threads(batches);
    } else {
        run_node(parts_.node, 0, batches);
    }
    sum_ = nullptr;
    Stopwatch watch;
    for (auto const& instance : instances_) {
        read_losses(*instance);
    }
    times_.backward += watch.seconds(); // a device's
    ModelInstance::Times longest;
    for (auto const& instance : instances_) {
        longest.forward = std::max(longest.forward, instance->times().forward);
        longest.backward = std::max(longest.backward, instance->times().backward);
    }
    times_.forward = longest.forward;
    times_.backward += longest.backward;
    if (kept_replica_ >= 0) {
        kept_.loss_sum = result_of(kept_replica_).loss_sum;
        kept_.weight = result_of(kept_replica_).weight;
        kept_replica_ = -1;
    }
    // Where the first instance ran replica 0, and nothing after it.
    first_has_buffers_ = parts_.node.first == 0 && (threads_ || parts_.node.count == 1);
}

void LocalStep::keep(int replica) {
    kept_replica_ = replica;
    kept_ = {.gradient = torch::empty({parts_.layout.size}, gradients_.options()), .buffers = {}};
}

void LocalStep::keep_gradient(int replica, torch::Tensor const& gradient) {
    if (keeps(replica)) {
        torch::NoGradGuard const no_grad;
        kept_.gradient.copy_(gradient);
    }
}

ReplicaPass LocalStep::repeat(int replica, Buffers const& start, BatchSource& batches) {
    auto& instance = *instances_.front();
    ReplicaPass pass{.gradient = torch::zeros({parts_.layout.size}, gradients_.options()),
                     .buffers = {}};
    first_has_buffers_ = false;
    instance.begin_step();
    instance.begin_replica(pass.gradient);
    start.restore_into(instance.model());
    instance.model().set_replica({parts_.sums, replica});
    for (int micro = 0; micro < micro_batches_; ++micro) {
        auto const tensors =
            comm::in_phase(parts_.world, comm::Phase::data, [&] { return batches.next(); });
        run_micro_batch(instance, replica, micro, tensors, /*eagerly=*/true);
    }
    instance.sink().end();
    pass.buffers = start.gathered_from(instance.model());
    for (auto const& [of, loss] : instance.take_losses()) {
        pass.loss_sum += loss.sum.item<double>();
        pass.weight += loss.weight;
    }
    return pass;
}

void LocalStep::restore_buffers() {
    if (!first_has_buffers_) {
        parts_.buffers.restore_into(*parts_.instances.front());
        first_has_buffers_ = true;
    }
}

void LocalStep::run_node(comm::TreeNode node, std::size_t depth, BatchSource& batches) {
    if (node.is_leaf()) {
        run_replica(node.first, depth, batches);
    } else {
        run_node(node.left(), depth, batches);
        run_node(node.right(), depth + 1, batches);
    }
    bool const is_last = node.first + node.count == parts_.node.first + parts_.node.count;
    if (node.is_leaf() && !is_last) {
        keep_gradient(node.first, arrays_[depth]);
    }
    if (is_last) {
        return; // the last replica has been added on the way, bucket by bucket
    }
    if (node.is_leaf()) {
        round(arrays_[depth]);
    } else {
        add(arrays_[depth], arrays_[depth + 1]);
    }
}

/// Adds a bucket of the last replica, at `depth`, to the sums of the replicas before it: it is the
/// right child of every node above it that is not finished yet.
void LocalStep::fold(int bucket, std::size_t depth) {
    auto const range = parts_.exchange.partition().bucket(bucket);
    auto const part = [&](std::size_t level) {
        return arrays_[level].narrow(0, range.first, range.count());
    };
    if (keeps(parts_.node.first + parts_.node.count - 1)) {
        torch::NoGradGuard const no_grad;
        kept_.gradient.narrow(0, range.first, range.count()).copy_(part(depth));
    }
    round(part(depth));
    for (auto level = depth; level > 0; --level) {
        add(part(level - 1), part(level));
    }
}

void LocalStep::round(torch::Tensor const& values) const {
    if (parts_.rounding == comm::Rounding::none) {
        return;
    }
    torch::NoGradGuard const no_grad;
    if (values.is_cpu()) {
        comm::round_to(parts_.rounding, {values.mutable_data_ptr<float>(),
                                         static_cast<std::size_t>(values.numel())});
    } else {
        values.copy_(
            values.to(parts_.rounding == comm::Rounding::fp16 ? torch::kHalf : torch::kBFloat16));
    }
}

void LocalStep::add(torch::Tensor const& into, torch::Tensor const& from) const {
    torch::NoGradGuard const no_grad;
    into.add_(from.to(into.device()));
    round(into);
}

void LocalStep::run_replica(int replica, std::size_t depth, BatchSource& batches) {
    auto& instance = *instances_.front();
    bool const is_last = replica + 1 == parts_.node.first + parts_.node.count;
    auto const leave = [this, depth](int bucket) {
        Scope const scope("bucket to the exchange", bucket, ScopeKind::handed_over);
        fold(bucket, depth);
        sum_->ready(bucket);
    };
    auto const leave_all = [&leave](int first, int last) {
        for (int bucket = first; bucket < last; ++bucket) {
            leave(bucket);
        }
    };
    start_replica(instance, replica, arrays_[depth]);
    for (int micro = 0; micro < micro_batches_; ++micro) {
        Stopwatch watch;
        auto const tensors =
            comm::in_phase(parts_.world, comm::Phase::data, [&] { return batches.next(); });
        times_.data += watch.seconds();
        if (is_last && micro + 1 == micro_batches_ && parts_.clip == 0) {
            instance.sink().announce(leave_all);
        }
        run_micro_batch(instance, replica, micro, tensors);
    }
    if (is_last && parts_.clip > 0) {
        instance.sink().announce(leave_all); // all at once: sums of clipped gradients are complete
    }
    end_replica(instance, replica);
}

void LocalStep::start_replica(ModelInstance& instance, int replica,
                              torch::Tensor const& gradients) {
    result_of(replica) = {};
    GradientSink::Prepare prepare;
    if (gradients.is_same(gradients_) && !threads_) {
        prepare = [this](int bucket) { parts_.exchange.prepare_gradients(bucket); };
    }
    instance.begin_replica(gradients, std::move(prepare));
    // Every replica starts a step from replica 0's buffers, as DDP's do, and keeps its own while
    // it accumulates; or always.
    bool const is_first = &instance == instances_.front().get();
    bool const has_them = is_first && parts_.kept.empty() && first_has_buffers_;
    if (is_first) {
        first_has_buffers_ = false;
    }
    if (!has_them) {
        buffers_of(replica).restore_into(instance.model());
    }
    instance.model().set_replica({parts_.sums, replica});
}

/// Without samples, only a model whose layers wait for other replicas has to run.
void LocalStep::run_micro_batch(ModelInstance& instance, int replica, int micro,
                                task::Tensors const& batch, bool eagerly) const {
    if (batch.samples() > 0 || parts_.sums != nullptr) {
        auto const key = mixed(mixed(step_key_ ^ static_cast<std::uint64_t>(replica)) ^
                               static_cast<std::uint64_t>(micro));
        instance.run({replica, key, loss_scale_, eagerly}, batch);
    }
}

void LocalStep::end_replica(ModelInstance& instance, int replica) {
    instance.sink().end();
    bool const all =
        parts_.clip > 0; // which of them the drawn samples use is a secret: all get noise
    for (std::size_t index = 0; index < used_.size(); ++index) {
        used_[index] = all || used_[index] != 0 || instance.sink().used(index) ? 1 : 0;
    }
    if (parts_.kept.empty() && replica != 0 && !keeps(replica)) {
        return;
    }
    auto const bytes = buffers_of(replica).gathered_from(instance.model());
    if (keeps(replica)) {
        kept_.buffers = bytes;
    }
    if (bytes.numel() == 0) {
        return;
    }
    if (!parts_.kept.empty()) {
        left_.push_back({&instance, &buffers_of(replica), bytes});
    }
    if (replica == 0) { // the others start the step from those of the step before
        left_.push_back({&instance, &parts_.buffers, bytes});
    }
}

void LocalStep::run_on_threads(BatchSource& batches) {
    auto const first = parts_.node.first;
    auto const count = instances_.size();
    Stopwatch watch;
    std::vector<std::vector<task::Tensors>> tensors_of(count);
    comm::in_phase(parts_.world, comm::Phase::data, [&] {
        for (auto& of_replica : tensors_of) {
            for (int micro = 0; micro < micro_batches_; ++micro) {
                of_replica.push_back(batches.next());
            }
        }
    });
    times_.data = watch.restart();
    for (int bucket = 0; bucket < parts_.exchange.partition().buckets(); ++bucket) {
        parts_.exchange.prepare_gradients(bucket); // no thread has to wait for other ranks
    }
    auto const play = [&](int which) {
        auto const at = static_cast<std::size_t>(which);
        auto& instance = *instances_[at];
        c10::OptionalDeviceGuard const guard(instance.device());
        start_replica(instance, first + which, arrays_[at]);
        for (int micro = 0; micro < micro_batches_; ++micro) {
            auto const& here = tensors_of[at][static_cast<std::size_t>(micro)];
            run_micro_batch(
                instance, first + which, micro,
                {moved(here.inputs, instance.device()), moved(here.targets, instance.device())});
        }
    };
    threads_->run([&](int which) {
        try {
            play(which);
        } catch (...) {
            if (parts_.sums != nullptr) {
                parts_.sums->abandon(); // the others need not wait for this one
            }
            throw;
        }
    });
    for (std::size_t at = 0; at < count; ++at) {
        end_replica(*instances_[at], first + static_cast<int>(at));
        keep_gradient(first + static_cast<int>(at), arrays_[at]);
    }
    for (int bucket = 0; bucket < parts_.exchange.partition().buckets(); ++bucket) {
        auto const range = parts_.exchange.partition().bucket(bucket);
        auto const part = [&](int replica) {
            return arrays_[static_cast<std::size_t>(replica - first)].narrow(0, range.first,
                                                                             range.count());
        };
        for (int replica = first; replica < first + static_cast<int>(count); ++replica) {
            round(part(replica));
        }
        Scope const scope("bucket to the exchange", bucket, ScopeKind::handed_over);
        comm::sum_in_tree_order(
            parts_.node, [](comm::TreeNode) { return false; },
            [&](int into, int from) { add(part(into), part(from)); });
        sum_->ready(bucket);
    }
}

/// One wait for the device, which has then done its forward and backward: for the buffers, too.
void LocalStep::read_losses(ModelInstance& instance) {
    auto const losses = instance.take_losses();
    std::vector<torch::Tensor> tensors;
    for (auto const& [replica, loss] : losses) {
        for (auto const& tensor : {loss.sum, loss.figures, loss.counts}) {
            if (tensor.defined()) {
                tensors.push_back(tensor);
            }
        }
    }
    for (auto const& left : left_) {
        if (left.instance == &instance) {
            tensors.push_back(left.bytes);
        }
    }
    auto const copies = host_copies(tensors);
    auto next = copies.begin();
    for (auto const& [replica, loss] : losses) {
        auto& result = result_of(replica);
        result.loss_sum += (next++)->item<double>();
        result.weight += loss.weight;
        if (loss.figures.defined()) {
            add_to(result.figures, *next++);
        }
        if (loss.counts.defined()) {
            add_to(result.counts, *next++);
        }
    }
    for (auto const& left : left_) {
        if (left.instance == &instance) {
            left.into->take(*next++);
        }
    }
}

ReplicaResult& LocalStep::result_of(int replica) {
    return results_[static_cast<std::size_t>(replica - parts_.node.first)];
}

Buffers& LocalStep::buffers_of(int replica) {
    return parts_.kept.empty() ? parts_.buffers
                               : parts_.kept[static_cast<std::size_t>(replica - parts_.node.first)];
}

void LocalStep::expect_trained() {
    for (auto const& instance : instances_) {
        instance->sink().expect_trained();
    }
}

void LocalStep::expect_unused(std::vector<char> const& unused) {
    for (auto const& instance : instances_) {
        instance->sink().expect_unused(unused);
    }
}

} // namespace lockstep::train
