#include "model_instance.hpp"

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/recorder.hpp"
#include "device/autocast.hpp"
#include "device/on_batch.hpp"
#include "optimizer/privacy.hpp"

namespace lockstep::train {

namespace {

torch::Device device_of(nn::Model const& model, torch::Device otherwise) {
    auto const parameters = model.parameters();
    return parameters.empty() ? otherwise : parameters.front().device();
}

} // namespace

ModelInstance::ModelInstance(Setup const& parts)
    : parts_(parts), device_(device_of(parts.model, parts.device)),
      sink_(parts.model, parts.layout, parts.partition),
      untouched_(parts.model, parts.name, parts.calls_own_code && parts.graphs == nullptr) {
    if (parts_.clip > 0) {
        sample_ = torch::zeros({parts_.layout.size},
                               torch::TensorOptions(torch::kFloat32).device(device_));
    }
}

void ModelInstance::begin_step() {
    losses_.clear(); // of a step that failed
    times_ = {};
    if (parts_.gate != nullptr) {
        parts_.gate->begin_step();
    }
}

void ModelInstance::begin_replica(torch::Tensor const& target, GradientSink::Prepare prepare) {
    if (parts_.clip > 0) {
        torch::NoGradGuard const no_grad;
        for (int bucket = 0; prepare && bucket < sink_.buckets(); ++bucket) {
            prepare(bucket);
        }
        sum_ = target;
        sum_.zero_();
        sink_.begin(sample_);
    } else {
        sink_.begin(target, std::move(prepare));
    }
}

void ModelInstance::run(Pass const& pass, task::Tensors const& batch) {
    if (parts_.clip > 0) {
        run_samples(pass, batch);
        return;
    }
    parts_.model.set_random_key(pass.random_key);
    if (parts_.graphs == nullptr) {
        run_eagerly(pass, batch);
        return;
    }
    if (pass.eagerly) {
        StepGraphs::OneThread const as_recorded;
        run_eagerly(pass, batch);
        return;
    }
    Stopwatch watch;
    auto const recorded = [&](task::Tensors const& fixed, torch::Tensor const& scale) {
        auto loss = forward(fixed);
        (loss.sum * scale).backward();
        return loss;
    };
    auto replayed = parts_.graphs->run({.batch = batch,
                                        .sink = sink_,
                                        .random_key = pass.random_key,
                                        .loss_scale = pass.loss_scale,
                                        .compute = recorded},
                                       [&] { run_eagerly(pass, batch); });
    if (replayed) {
        losses_.push_back({pass.replica, std::move(*replayed)});
        times_.backward += watch.seconds(); // of both
    }
}

void ModelInstance::run_eagerly(Pass const& pass, task::Tensors const& batch) {
    Stopwatch watch;
    auto const loss = on_batch(batch, [&] {
        Scope const scope("forward", pass.replica);
        return forward(batch);
    });
    times_.forward += watch.restart() - waited();
    on_batch(batch, [&] {
        Scope const scope("backward", pass.replica);
        backward(pass.loss_scale == 1 ? loss.sum : loss.sum * pass.loss_scale);
        sink_.flush();
    });
    keep(pass.replica, loss);
    times_.backward += watch.restart() - waited();
}

/// One after the other: a norm is known when all of a sample's gradient is there.
void ModelInstance::run_samples(Pass const& pass, task::Tensors const& batch) {
    for (std::int64_t at = 0; at < batch.samples(); ++at) {
        task::Tensors const one{batch.inputs.sample(at), batch.targets.sample(at)};
        parts_.model.set_random_key(mixed(pass.random_key ^ static_cast<std::uint64_t>(at)));
        Stopwatch watch;
        auto const loss = on_batch(one, [&] {
            Scope const scope("forward", pass.replica);
            return forward(one);
        });
        times_.forward += watch.restart() - waited();
        if (loss.weight > 0) {
            sink_.begin(sample_);
            on_batch(one, [&] {
                Scope const scope("backward", pass.replica);
                backward(loss.sum / loss.weight);
            });
            sink_.end();
            add_clipped(sum_, sample_, parts_.clip);
        }
        keep(pass.replica, loss);
        times_.backward += watch.restart() - waited();
    }
}

task::Loss ModelInstance::forward(task::Tensors const& batch) {
    Autocast const autocast(parts_.precision, device_);
    untouched_.begin();
    auto const compute = [&] { return parts_.task.training_loss(parts_.model, batch); };
    auto loss = parts_.gate == nullptr ? compute() : parts_.gate->open(compute);
    untouched_.require();
    return loss;
}

void ModelInstance::backward(torch::Tensor const& loss) {
    if (parts_.gate == nullptr) {
        loss.backward();
    } else {
        parts_.gate->open_backward([&] { loss.backward(); });
    }
}

/// Seconds since the last call; they are the exchange's.
double ModelInstance::waited() const {
    return parts_.gate == nullptr ? 0 : parts_.gate->take_waited();
}

void ModelInstance::keep(int replica, task::Loss const& loss) {
    losses_.push_back({replica, {loss.sum.detach(), loss.weight, loss.figures, loss.counts}});
}

} // namespace lockstep::train
