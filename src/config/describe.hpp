#pragma once

#include "lockstep/config/deck.hpp"

#include "rule.hpp"

namespace lockstep::config {

/// The one list of the deck's keys: calls visit(key, value, rule, meaning) for each of them and
/// visit.own(section, keys) where a section holds keys of the model or task that it names.
template <class SomeDeck, class Visitor>
void describe(SomeDeck& deck, Visitor& visit) {
    auto const fixed = AtResume::forced;
    // Products of limits stay within 64 bits.
    constexpr double longest_s = 1e9;
    constexpr double max_epochs = 1e9;
    constexpr double below_1 = 0.999999999; // decay of averages, which would never move at 1

    visit("run.name", deck.run.name, such_as(check_run_name, AtResume::renewed),
          "name of the run; default: the deck's name");
    visit("run.directory", deck.run.directory, such_as(check_run_directory, AtResume::renewed),
          "directory for everything that the run writes; default: runs/NAME");
    visit("run.seed", deck.run.seed, at_least(0, fixed), "seed of all random numbers");
    visit("run.replicas", deck.run.replicas, between(0, 1 << 20, fixed),
          "number of logical data-parallel replicas; 0: the number of ranks at the first start");
    visit("run.device", deck.run.device, any(),
          "auto, cpu, or an accelerator: cuda, hip or xpu, with a number (cuda:1) or without");
    visit("run.devices", deck.run.devices, any(),
          "GPUs of a host to use: all, a count, or comma-separated numbers");
    visit("run.mode", deck.run.mode, one_of({"auto", "single", "dp", "ddp"}),
          "auto: ddp on several ranks, else single, or dp with several GPUs; single: one rank, "
          "sequential replicas; dp: one rank, concurrent replicas; ddp: replicas spread over "
          "ranks");
    visit("run.placement", deck.run.placement, one_of({"even", "speed"}),
          "how replicas are distributed over ranks: evenly, or by measured speed; the result is "
          "the same");
    visit("run.threads", deck.run.threads, between(1, 1024, fixed), "threads per replica");
    visit("run.deterministic", deck.run.deterministic, any(fixed),
          "refuse operators without a deterministic form");
    visit("run.graphs", deck.run.graphs, any(),
          "record the forward and backward pass of a batch as a device graph (a CUDA graph), and "
          "replay it; the result is the same");
    visit("run.walltime-seconds", deck.run.walltime_seconds, between(0, longest_s),
          "time limit of the job, counted from its start; 0: the scheduler's limit");

    visit("data.train", deck.data.train, such_as(check_files),
          "training set: a file, a list or a glob");
    visit(
        "data.validation", deck.data.validation, such_as(check_files_or_share, fixed),
        "validation set, evaluated during training: files, or a share of data.train such as 10 %");
    visit("data.test", deck.data.test, such_as(check_files),
          "test set, evaluated after training with the best model");
    visit("data.inputs", deck.data.inputs, any(fixed), "names of the input datasets in the files");
    visit("data.targets", deck.data.targets, any(fixed),
          "names of the target datasets in the files");
    visit("data.sample-per-file", deck.data.sample_per_file, any(fixed),
          "each file is one sample: its datasets have no sample dimension");
    visit("data.sequence", deck.data.sequence, between(0, 1 << 24, fixed),
          "tokens per sample, cut from the documents one after the other; the target of each token "
          "is the next one; 0: samples as they are stored");
    visit("data.batch", deck.data.batch, between(1, 1 << 22, fixed),
          "samples per replica and micro-batch");
    visit("data.global-batch", deck.data.global_batch, between(0, 1 << 30, fixed),
          "samples per micro-batch over all replicas; 0: data.batch applies");
    visit("data.drop-last", deck.data.drop_last, any(fixed),
          "drop an epoch's incomplete last step");
    visit("data.workers", deck.data.workers, between(1, 256), "loader threads per rank");
    visit("data.prefetch", deck.data.prefetch, between(1, 1024), "batches read ahead");
    visit("data.cache", deck.data.cache, one_of({"none", "memory", "local:DIRECTORY"}),
          "memory: read all data into memory, once per host; local:DIRECTORY: first copy the files "
          "to a disk of the host");
    visit("data.augment", deck.data.augment, any(fixed),
          "augmentation of training samples: flip, crop:PIXELS, noise:AMOUNT, mask:ROWS:COLUMNS");
    visit("data.shuffle", deck.data.shuffle, one_of({"full", "block", "none"}, fixed),
          "order of the samples in an epoch");
    visit("data.sample-weights", deck.data.sample_weights, any(fixed),
          "dataset in the training files with the weights by which samples are drawn");
    visit("data.replacement", deck.data.replacement, any(fixed),
          "a sample drawn by weight can be drawn again in the same epoch; false: each is drawn "
          "once, and samples with large weights tend to come first");
    visit("data.bucket-by-length", deck.data.bucket_by_length, between(0, 1 << 20, fixed),
          "sort by length within this many consecutive batches; 0: off");

    visit("model.name", deck.model.name, any(fixed), "the model (see lockstep models)");
    visit("model.weights", deck.model.weights, such_as(check_paths, fixed),
          "initial weights: a safetensors file, a best.h5 or a checkpoint");
    visit.own("model", deck.model.own);

    visit("task.kind", deck.task.kind, any(fixed), "the task (see lockstep tasks)");
    visit("task.metric", deck.task.metric, any(),
          "metric that decides which model is best; default: the task's first metric");
    visit.own("task", deck.task.own);

    auto& optimizer = deck.optimizer;
    visit("optimizer.name", optimizer.name, one_of({"adamw", "adam", "sgd", "lars", "lamb"}, fixed),
          "update rule");
    visit("optimizer.learning-rate", optimizer.learning_rate, at_least(0, fixed),
          "peak learning rate");
    visit("optimizer.scale-learning-rate", optimizer.scale_learning_rate,
          one_of({"none", "linear", "sqrt"}, fixed),
          "multiplies learning-rate by replicas / reference-replicas (linear) or its square root "
          "(sqrt)");
    visit("optimizer.reference-replicas", optimizer.reference_replicas, at_least(1, fixed),
          "number of replicas that learning-rate was chosen for");
    visit("optimizer.weight-decay", optimizer.weight_decay, at_least(0, fixed),
          "weight decay; does not apply to the parameters in no-decay");
    visit("optimizer.no-decay", optimizer.no_decay, any(fixed),
          "parameters exempt from weight decay and from the trust ratio: biases, norms, name "
          "patterns (*.weight); or none");
    visit("optimizer.ema", optimizer.ema, between(0, below_1, fixed),
          "decay of the averaged weights (EMA), which are evaluated and exported; 0: off");
    visit(
        "optimizer.proximal", optimizer.proximal, at_least(0, fixed),
        "strength of a pull towards the initial weights, added to the gradient (FedProx); 0: off");
    visit("optimizer.momentum", optimizer.momentum, between(0, below_1, fixed),
          "momentum of sgd and lars");
    visit("optimizer.nesterov", optimizer.nesterov, any(fixed), "Nesterov momentum in sgd");
    visit("optimizer.betas", optimizer.betas, between(0, below_1, fixed),
          "decay rates of the moments, for adamw, adam and lamb");
    visit("optimizer.epsilon", optimizer.epsilon, at_least(1e-30, fixed),
          "term added to the denominator, for adamw, adam and lamb");
    visit("optimizer.trust-coefficient", optimizer.trust_coefficient, at_least(0, fixed),
          "lars: size of a parameter's update relative to the parameter's norm, before the "
          "learning rate is applied");
    visit("optimizer.clip-norm", optimizer.clip_norm, at_least(0, fixed),
          "gradient norm above which gradients are clipped; 0: off");
    visit("optimizer.accumulate", optimizer.accumulate, between(1, 1 << 20, fixed),
          "micro-batches per step");
    visit("optimizer.update", optimizer.update, one_of({"sharded", "replicated"}),
          "sharded: each rank updates its shard; replicated: each rank updates all parameters");

    visit("schedule.name", deck.schedule.name, one_of({"constant", "cosine", "step"}, fixed),
          "schedule of the learning rate");
    visit("schedule.warmup-epochs", deck.schedule.warmup_epochs, between(0, max_epochs, fixed),
          "epochs of linear warm-up from 0 to the peak");
    visit("schedule.warmup-steps", deck.schedule.warmup_steps, at_least(0, fixed),
          "steps of linear warm-up from 0 to the peak; the longer of the two warm-ups applies");
    visit("schedule.minimum", deck.schedule.minimum, between(0, 1, fixed),
          "cosine schedule: final rate, relative to the peak");
    visit("schedule.step-epochs", deck.schedule.step_epochs, between(1, max_epochs, fixed),
          "step schedule: epochs between reductions");
    visit("schedule.factor", deck.schedule.factor, between(0, 1, fixed),
          "step schedule: factor of each reduction");

    auto& precision = deck.precision;
    visit("precision.compute", precision.compute, one_of({"fp32", "bf16", "fp16"}, fixed),
          "type that operators compute in; weights stay fp32");
    visit("precision.loss-scale", precision.loss_scale, any(fixed),
          "loss scale for fp16: dynamic, or a number");
    visit("precision.tf32", precision.tf32, any(fixed),
          "GPUs may round the inputs of matrix products to TF32");
    visit("precision.cudnn-benchmark", precision.cudnn_benchmark, any(),
          "cuDNN picks the fastest algorithms; off if run.deterministic = true");
    visit("precision.gradient-checkpointing", precision.gradient_checkpointing, any(),
          "save memory: recompute activations during backward");

    auto& distill = deck.distill;
    visit("distill.teacher", distill.teacher, such_as(check_paths, fixed),
          "trained model whose outputs the model also learns from: a checkpoint, a "
          "best.h5, a safetensors file, a TorchScript file or a program of torch.export");
    visit("distill.teacher-deck", distill.teacher_deck, such_as(check_paths, fixed),
          "deck of the teacher's model, for a safetensors file");
    visit("distill.temperature", distill.temperature, between(0.01, 1000, fixed),
          "divides the scores of both models before they are compared");
    visit("distill.weight", distill.weight, between(0, 1, fixed),
          "the teacher's share of the loss; the rest is the loss on the targets");

    auto& prune = deck.prune;
    visit("prune.pattern", prune.pattern, such_as(check_pattern, fixed),
          "which weights to remove: none; unstructured; channels; or N:M, such as 2:4, which keeps "
          "N of every M neighbouring weights");
    visit("prune.target", prune.target, such_as(check_prune_target, fixed),
          "channels: share of the multiply-adds to keep, such as macs 0.5");
    visit("prune.multiple", prune.multiple, between(1, 1024, fixed),
          "channels: each layer keeps a multiple of this number");
    visit("prune.sparsity", prune.sparsity, between(0.001, 0.999, fixed),
          "unstructured: share of the weights to remove");
    visit("prune.score", prune.score, one_of({"magnitude", "taylor"}, fixed),
          "which weights to keep: the largest (magnitude), or those whose removal would change the "
          "loss most, to first order (taylor)");
    visit("prune.scope", prune.scope, one_of({"global", "layer"}, fixed),
          "unstructured and channels: compare scores across the whole model (global), or within "
          "each layer");
    visit("prune.except", prune.except, any(fixed),
          "weights that are never removed: name patterns (*.output.weight), or none");
    visit("prune.begin", prune.begin, at_least(0, fixed), "step after which weights are removed");
    visit("prune.end", prune.end, at_least(0, fixed),
          "unstructured and channels: step of the last removal; until then the removed share grows "
          "on a cubic schedule; default: remove all at prune.begin");
    visit("prune.every", prune.every, at_least(1, fixed), "steps between removals");

    visit("quantise.aware", deck.quantise.aware, any(fixed),
          "quantisation-aware training: layers round their weights and inputs as in int8, and the "
          "scales are learnt for checkpoint quantise");

    auto& privacy = deck.privacy;
    visit("privacy.noise", privacy.noise, between(0, 1e6, fixed),
          "differential privacy of training samples (DP-SGD): standard deviation of the noise "
          "added to the sum of gradients, relative to privacy.clip; 0: off");
    visit("privacy.clip", privacy.clip, between(1e-9, 1e9, fixed),
          "L2 norm to which each sample's gradient is clipped");
    visit("privacy.delta", privacy.delta, between(1e-30, 0.5),
          "delta at which epsilon is reported");
    visit("privacy.epsilon", privacy.epsilon, at_least(0),
          "end training before epsilon exceeds this; 0: no limit");
    visit("privacy.key", privacy.key, such_as(check_paths),
          "file with the secret key from which noise and samples are drawn, created if it does not "
          "exist; default: privacy.key in run.directory");

    visit("communication.backend", deck.communication.backend,
          one_of({"auto", "mpi", "nccl", "oneccl"}), "library that exchanges gradients");
    auto& communication = deck.communication;
    visit("communication.bucket-mb", communication.bucket_mb, buckets(),
          "megabytes of gradients that are sent together");
    visit("communication.first-bucket-mb", communication.first_bucket_mb, buckets(),
          "size in megabytes of the bucket that is ready first");
    visit("communication.compression", communication.compression,
          one_of({"none", "fp16", "bf16", "powersgd"}, fixed),
          "fp16, bf16: every sum is rounded to 16 bits; powersgd: low-rank matrices are exchanged "
          "instead of gradients");
    visit("communication.powersgd-rank", communication.powersgd_rank, between(1, 64, fixed),
          "rank of powersgd's matrices");
    visit("communication.reduction", communication.reduction, one_of({"ordered", "native"}, fixed),
          "ordered: bitwise identical results on any number of ranks; native: sums in the "
          "library's order");
    visit("communication.unused-parameters", communication.unused_parameters, any(fixed),
          "some parameters may have no gradient; these are not updated");
    visit("communication.static-graph", communication.static_graph, any(fixed),
          "the same parameters get gradients in every step");
    visit("communication.broadcast-buffers", communication.broadcast_buffers, any(fixed),
          "every replica starts each step with replica 0's buffers; false: with its own");
    visit("communication.sync-batch-norm", communication.sync_batch_norm, any(fixed),
          "batch norm uses statistics over all replicas");
    visit("communication.timeout-seconds", deck.communication.timeout_seconds,
          between(1, longest_s), "longest wait for another rank or its device");
    visit("communication.check-replicas-every", deck.communication.check_replicas_every,
          at_least(0), "steps between comparisons of all ranks' weights; 0: never");

    visit("checkpoint.every-steps", deck.checkpoint.every_steps, at_least(0),
          "steps between checkpoints; 0: only the first and the last");
    visit("checkpoint.every-minutes", deck.checkpoint.every_minutes, between(0, longest_s),
          "minutes between checkpoints; 0: off");
    visit("checkpoint.keep", deck.checkpoint.keep, between(1, 1 << 20),
          "number of checkpoints to keep");
    visit("checkpoint.asynchronous", deck.checkpoint.asynchronous, any(),
          "write checkpoints while training continues");
    visit("checkpoint.resume", deck.checkpoint.resume, such_as(check_paths, AtResume::renewed),
          "what to resume from: auto (the newest intact checkpoint), none, or a file");
    visit("checkpoint.best", deck.checkpoint.best, any(),
          "metric that decides which model best.h5 holds; default: task.metric");
    visit("checkpoint.local", deck.checkpoint.local, such_as(check_run_directory),
          "fast directory for new checkpoints, which are then copied to the run's directory");

    visit("fault-tolerance.restarts", deck.fault_tolerance.restarts, at_least(0),
          "how many times in a row lockstep launch restarts after losing a rank, without progress "
          "in between");
    visit("fault-tolerance.recovery-timeout-seconds", deck.fault_tolerance.recovery_timeout_seconds,
          between(1, longest_s), "longest time from a restart to its first step");

    visit("monitor.log-every", deck.monitor.log_every, at_least(1), "steps between step records");
    visit("monitor.progress", deck.monitor.progress, one_of({"auto", "bar", "plain", "none"}),
          "progress display during training");
    visit("monitor.tensorboard", deck.monitor.tensorboard, any(),
          "write TensorBoard event files in the run's directory");
    visit("monitor.histograms", deck.monitor.histograms, one_of({"none", "weights", "gradients"}),
          "histograms in event files at the end of each epoch; gradients: histograms of both "
          "weights and gradients");
    visit("monitor.images", deck.monitor.images, between(0, 1 << 20),
          "number of samples of the run's first batch to show in event files, if they are images, "
          "clips or boxes");
    visit("monitor.plots", deck.monitor.plots, any(), "draw plots of the metrics when a run ends");
    visit("monitor.weight-hash", deck.monitor.weight_hash, any(),
          "write a hash of the weights to each step record, to find where two runs diverge");

    visit("profile.steps", deck.profile.steps, such_as(check_steps),
          "steps of which to record a timeline, such as 100-110; for a job that is already "
          "running, use lockstep profile");
    visit("profile.memory", deck.profile.memory, any(),
          "timelines show allocated memory, by the part of the step that allocated it");

    visit("train.epochs", deck.train.epochs, between(0, max_epochs),
          "passes over data.train; 0: no limit");
    visit("train.steps", deck.train.steps, at_least(0), "optimizer steps; 0: no limit");
    visit("train.validate-every", deck.train.validate_every, at_least(0),
          "steps between validations; 0: validate after each epoch");
}

} // namespace lockstep::config
