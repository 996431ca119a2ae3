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
          "name of the run; default: NAME for the deck NAME.ini");
    visit("run.directory", deck.run.directory,
          such_as(check_run_directory, AtResume::renewed).naming(Named::output),
          "directory for everything that the run writes; default: runs/NAME");
    visit("run.seed", deck.run.seed, at_least(0, fixed), "seed of all random numbers");
    visit("run.replicas", deck.run.replicas, between(0, 1 << 20, fixed),
          "number of logical data-parallel replicas; 0: the number of ranks at the first start");
    visit("run.device", deck.run.device, any(),
          "device to compute on: auto, cpu, or an accelerator (cuda, hip or xpu), with or without "
          "a number, such as cuda:1");
    visit("run.devices", deck.run.devices, any(),
          "which GPUs of each host to use: all, a count, or a list of numbers or UUIDs, separated "
          "by commas (a list of a single number needs a comma: 3,)");
    visit("run.mode", deck.run.mode, one_of({"auto", "single", "dp", "ddp"}),
          "one rank trains the replicas one after the other (single) or concurrently (dp), or the "
          "replicas are distributed over ranks (ddp); auto: ddp on several ranks, dp on one rank "
          "with several GPUs, otherwise single");
    visit("run.placement", deck.run.placement, one_of({"even", "speed"}),
          "how replicas are distributed over ranks: evenly (even), or by the measured speed of the "
          "ranks (speed); the results are bitwise identical");
    visit("run.threads", deck.run.threads, between(1, 1024, fixed), "threads per replica");
    visit("run.deterministic", deck.run.deterministic, any(fixed),
          "refuse operators that have no deterministic implementation");
    visit("run.graphs", deck.run.graphs, one_of({"auto", "true", "false"}),
          "record the forward and backward pass of a batch as a device graph (a CUDA graph), and "
          "replay the graph for later batches: true, false, or auto, where the graph is exact and "
          "leaves enough memory; the results are bitwise identical");
    visit("run.walltime-seconds", deck.run.walltime_seconds, between(0, longest_s),
          "time limit of the job in seconds, counted from the start of the job; 0: the scheduler's "
          "limit");

    visit("data.train", deck.data.train, such_as(check_files).naming(Named::samples),
          "training set: a file, a list of files or a glob");
    visit(
        "data.validation", deck.data.validation,
        such_as(check_files_or_share, fixed).naming(Named::samples),
        "validation set, evaluated during training: files, or a share of data.train such as 10 %");
    visit("data.test", deck.data.test, such_as(check_files).naming(Named::samples),
          "test set, on which the best model is evaluated after training");
    visit("data.inputs", deck.data.inputs, any(fixed).naming(Named::datasets),
          "names of the input datasets in the files");
    visit("data.targets", deck.data.targets,
          any(fixed).naming(Named::datasets).with(needs::stored_samples),
          "names of the target datasets in the files");
    visit("data.normalise-targets", deck.data.normalise_targets, any(fixed),
          "for task.kind = regression: learn targets minus their mean, divided by their standard "
          "deviation in the training set; metrics and predictions stay in the targets' own units");
    visit("data.sample-per-file", deck.data.sample_per_file, any(fixed),
          "each file is one sample, and its datasets have no sample dimension");
    visit("data.sequence", deck.data.sequence, between(0, 1 << 24, fixed),
          "tokens per sample; the samples are cut from the documents one after the other, and the "
          "target of each token is the next token; 0: samples are read as they are stored");
    visit("data.mask", deck.data.mask, any(fixed).naming(Named::datasets),
          "with data.sequence: name of a dataset in the files, such as learnt, that is 0 for each "
          "token to leave out of the loss; default: all tokens count");
    visit("data.batch", deck.data.batch, between(1, 1 << 22, fixed),
          "samples per replica and micro-batch");
    visit("data.global-batch", deck.data.global_batch, between(0, 1 << 30, fixed),
          "samples per micro-batch over all replicas together; 0: data.batch for each replica");
    visit("data.drop-last", deck.data.drop_last, any(fixed),
          "drop the last step of an epoch if it is incomplete");
    visit("data.workers", deck.data.workers, between(1, 256), "loader threads per rank");
    visit("data.prefetch", deck.data.prefetch, between(1, 1024),
          "number of batches that are read ahead");
    visit("data.cache", deck.data.cache,
          one_of({"none", "memory", "local:DIRECTORY"}).naming(Named::cache),
          "read batches from the files (none), read all data into memory once per host (memory), "
          "or first copy the files to a disk of the host (local:DIRECTORY)");
    visit("data.augment", deck.data.augment, any(fixed),
          "random changes of training samples: none, or a list of entries such as flip, "
          "resized-crop and colour:0.4:0.4:0.4:0.1@0.8 (see lockstep data augment)");
    visit("data.shuffle", deck.data.shuffle, one_of({"full", "block", "none"}, fixed),
          "order of the samples in an epoch: shuffled as a whole (full), shuffled by blocks "
          "(block), or as stored (none)");
    visit("data.sample-weights", deck.data.sample_weights, any(fixed).naming(Named::datasets),
          "dataset in the training files with a weight for each sample; samples are drawn in "
          "proportion to their weights");
    visit("data.replacement", deck.data.replacement, any(fixed).with(needs::sample_weights),
          "with data.sample-weights: a sample can be drawn several times in an epoch; false: each "
          "sample is drawn once, and samples with large weights tend to come first");
    visit("data.bucket-by-length", deck.data.bucket_by_length, between(0, 1 << 20, fixed),
          "sort samples by length within groups of this many consecutive batches; 0: off");

    visit("model.name", deck.model.name, any(fixed).naming(Named::code),
          "name of the model (see lockstep models)");
    visit("model.weights", deck.model.weights, such_as(check_paths, fixed).naming(Named::model),
          "initial weights: a safetensors file, an index of such files or their directory, a "
          "best.h5 or a checkpoint");
    visit(
        "model.weights-match", deck.model.weights_match,
        one_of({"strict", "common"}, fixed).with(needs::first_weights),
        "strict: model.weights must have each tensor of the model, in the same shape; common: the "
        "run takes the tensors that fit, and the others start from run.seed");
    visit("model.lora-rank", deck.model.lora_rank, between(0, 4096, fixed),
          "rank of the adapters (LoRA) that are trained instead of the model's weights; 0: off");
    visit("model.lora-alpha", deck.model.lora_alpha,
          between(1e-6, 1e6, fixed).with(needs::adapters),
          "what adapters add to their layers is multiplied by this number divided by lora-rank");
    visit(
        "model.lora-targets", deck.model.lora_targets, any(fixed).with(needs::adapters),
        "linear layers that get adapters: attention, or a list of name patterns such as blocks.*; "
        "!PATTERN excepts names");
    visit("model.lora-train", deck.model.lora_train, any(fixed).with(needs::adapters),
          "parameters that are trained besides the adapters: a list of name patterns such as "
          "output.*; or none");
    visit.own("model", deck.model.own);

    visit("task.kind", deck.task.kind, any(fixed).naming(Named::code),
          "name of the task (see lockstep tasks)");
    visit("task.metric", deck.task.metric, any().with(needs::no_other_metric),
          "metric by which the best model is chosen; default: the first metric of the task");
    visit("task.metrics", deck.task.metrics, any(),
          "list of more metrics to measure, from those that lockstep tasks calls on request");
    visit.own("task", deck.task.own);

    auto& optimizer = deck.optimizer;
    visit("optimizer.name", optimizer.name, one_of({"adamw", "adam", "sgd", "lars", "lamb"}, fixed),
          "update rule");
    visit("optimizer.learning-rate", optimizer.learning_rate, at_least(0, fixed),
          "peak learning rate");
    visit("optimizer.scale-learning-rate", optimizer.scale_learning_rate,
          one_of({"none", "linear", "sqrt"}, fixed),
          "multiply learning-rate by the ratio run.replicas / reference-replicas (linear), by the "
          "square root of this ratio (sqrt), or by 1 (none)");
    visit("optimizer.reference-replicas", optimizer.reference_replicas,
          at_least(1, fixed).with(needs::scaled_rate),
          "number of replicas for which learning-rate was chosen");
    visit("optimizer.weight-decay", optimizer.weight_decay, at_least(0, fixed),
          "weight decay of all parameters except those in no-decay");
    visit("optimizer.no-decay", optimizer.no_decay, any(fixed),
          "parameters to which weight decay and the trust ratio do not apply: a list of biases, "
          "norms and name patterns such as *.weight; or none");
    visit(
        "optimizer.groups", optimizer.groups, such_as(check_groups, fixed),
        "parameters with another learning rate or weight decay: a list of PATTERN rate FACTOR "
        "decay VALUE, in which rate or decay may be left out, such as output.* rate 10; the first "
        "pattern that a name fits counts, and no-decay still applies; or none");
    visit("optimizer.layer-decay", optimizer.layer_decay, between(1e-6, 1, fixed),
          "factor by which the learning rate falls from each block of a transformer to the block "
          "before; 1: off");
    visit("optimizer.freeze", optimizer.freeze, any(fixed),
          "parameters that are not trained: a list of name patterns such as features.*; !PATTERN "
          "excepts names, and a list of exceptions alone freezes all other parameters; batch norms "
          "whose parameters are frozen keep their running statistics; or none");
    visit("optimizer.thaw-epoch", optimizer.thaw_epoch,
          between(0, max_epochs, fixed).with(needs::frozen),
          "number of epochs after which the parameters in freeze are trained, too; 0: never");
    visit("optimizer.ema", optimizer.ema, between(0, below_1, fixed),
          "decay of the exponential moving average (EMA) of the weights; the averaged weights are "
          "evaluated and exported; 0: off");
    visit("optimizer.proximal", optimizer.proximal, at_least(0, fixed),
          "strength of the proximal term (FedProx), which is added to the gradient and pulls "
          "towards the initial weights; 0: off");
    visit("optimizer.momentum", optimizer.momentum,
          between(0, below_1, fixed).with(needs::sgd_or_lars), "momentum of sgd and lars");
    visit("optimizer.nesterov", optimizer.nesterov,
          any(fixed).with(needs::sgd).with(needs::nesterov_momentum),
          "use Nesterov momentum in sgd");
    visit("optimizer.betas", optimizer.betas, between(0, below_1, fixed).with(needs::adam),
          "decay rates of the moments, for adamw, adam and lamb");
    visit("optimizer.epsilon", optimizer.epsilon, at_least(1e-30, fixed).with(needs::adam),
          "term added to the denominator, for adamw, adam and lamb");
    visit("optimizer.trust-coefficient", optimizer.trust_coefficient,
          at_least(0, fixed).with(needs::lars),
          "lars: ratio of the norm of a parameter's update, before the learning rate is applied, "
          "to the norm of the parameter");
    visit("optimizer.clip-norm", optimizer.clip_norm, at_least(0, fixed),
          "largest norm of the whole gradient; a gradient with a larger norm is scaled down to "
          "this norm; 0: off");
    visit("optimizer.accumulate", optimizer.accumulate, between(1, 1 << 20, fixed),
          "micro-batches per step");
    visit("optimizer.update", optimizer.update,
          one_of({"sharded", "replicated", "sharded-gradients", "fully-sharded"}),
          "what a rank holds only of its own shard of the parameters, which it updates: the "
          "optimizer state (sharded), also the summed gradients (sharded-gradients), also the "
          "parameters (fully-sharded); or nothing, because every rank updates all parameters "
          "(replicated)");

    visit("schedule.name", deck.schedule.name,
          one_of({"constant", "cosine", "linear", "polynomial", "one-cycle", "cosine-restarts",
                  "inverse-sqrt", "exponential", "step", "multi-step", "plateau"},
                 fixed),
          "schedule of the learning rate");
    auto& schedule = deck.schedule;
    visit("schedule.warmup-epochs", schedule.warmup_epochs,
          between(0, max_epochs, fixed).with(needs::a_warm_up),
          "epochs of linear warm-up from 0 to the peak rate; 0: schedule.warmup-steps");
    visit("schedule.warmup-steps", schedule.warmup_steps, at_least(0, fixed).with(needs::a_warm_up),
          "steps of linear warm-up from 0 to the peak rate; 0: schedule.warmup-epochs");
    visit("schedule.minimum", schedule.minimum, between(0, 1, fixed).with(needs::a_lowest_rate),
          "cosine, cosine-restarts, linear, polynomial and plateau schedule: lowest learning rate, "
          "relative to the peak");
    visit("schedule.step-epochs", schedule.step_epochs,
          between(1, max_epochs, fixed).with(needs::step_schedule),
          "step schedule: epochs between reductions of the learning rate");
    visit("schedule.factor", schedule.factor, between(0, 1, fixed).with(needs::a_factor),
          "step, multi-step and plateau schedule: factor by which each reduction multiplies the "
          "learning rate; exponential schedule: factor of an epoch");
    visit("schedule.milestones", schedule.milestones,
          such_as(check_milestones, fixed).with(needs::milestones),
          "multi-step schedule: epochs after which the learning rate is reduced, such as 30, 60, "
          "80");
    visit("schedule.power", schedule.power, between(0, 100, fixed).with(needs::polynomial),
          "polynomial schedule: power of the share of the steps that is left");
    visit("schedule.rise", schedule.rise, between(0, 1, fixed).with(needs::one_cycle),
          "one-cycle schedule: share of the run's steps in which the learning rate rises to the "
          "peak");
    visit("schedule.start-divisor", schedule.start_divisor,
          between(1, 1e12, fixed).with(needs::one_cycle),
          "one-cycle schedule: the first learning rate is the peak divided by this number");
    visit("schedule.end-divisor", schedule.end_divisor,
          between(1, 1e12, fixed).with(needs::one_cycle),
          "one-cycle schedule: the last learning rate is the first one divided by this number");
    visit("schedule.cycle-epochs", schedule.cycle_epochs,
          between(1e-6, max_epochs, fixed).with(needs::restarts),
          "cosine-restarts schedule: epochs until the first restart");
    visit("schedule.cycle-factor", schedule.cycle_factor,
          between(1, 1000, fixed).with(needs::restarts),
          "cosine-restarts schedule: each cycle takes this many times as long as the one before");
    visit("schedule.patience", schedule.patience, between(0, 1e9, fixed).with(needs::plateau),
          "plateau schedule: validations in a row without improvement that leave the learning rate "
          "as it is; the next one reduces it");
    visit("schedule.threshold", schedule.threshold, between(0, 1, fixed).with(needs::plateau),
          "plateau schedule: largest change of the metric that is no improvement, relative to the "
          "best value");
    visit("schedule.cooldown", schedule.cooldown, between(0, 1e9, fixed).with(needs::plateau),
          "plateau schedule: validations after a reduction that do not count as without "
          "improvement");

    auto& precision = deck.precision;
    visit("precision.compute", precision.compute, one_of({"fp32", "bf16", "fp16"}, fixed),
          "type in which operators compute; the weights stay in fp32");
    visit("precision.loss-scale", precision.loss_scale, any(fixed).with(needs::fp16),
          "loss scale for fp16: dynamic, or a number");
    visit("precision.tf32", precision.tf32, any(fixed),
          "allow GPUs to round the inputs of matrix products to TF32");
    visit("precision.cudnn-benchmark", precision.cudnn_benchmark, any().with(needs::any_algorithms),
          "let cuDNN choose the fastest algorithms by measuring; no effect if run.deterministic = "
          "true");
    visit("precision.gradient-checkpointing", precision.gradient_checkpointing, any(),
          "recompute activations during the backward pass, to save memory");
    visit("precision.memory-format", precision.memory_format,
          one_of({"auto", "contiguous", "channels-last"}, fixed),
          "order in which accelerators keep the images of built-in models in memory; auto: "
          "channels-last if precision.compute is bf16 or fp16, otherwise contiguous");

    auto& distill = deck.distill;
    visit("distill.teacher", distill.teacher, such_as(check_paths, fixed).naming(Named::model),
          "file with a trained model, the teacher, whose outputs the model also learns to match: a "
          "checkpoint, a best.h5, a safetensors file, a TorchScript file or a program of "
          "torch.export");
    visit("distill.teacher-deck", distill.teacher_deck,
          such_as(check_paths, fixed).naming(Named::model).with(needs::a_teacher),
          "deck of the teacher's model, which is not this run's; needed only if the teacher is a "
          "safetensors file of another program");
    visit(
        "distill.outputs", distill.outputs, such_as(check_paths, fixed).naming(Named::samples),
        "file with a teacher's outputs for the samples of data.train, written by lockstep evaluate "
        "--outputs; the run reads them instead of running distill.teacher");
    visit("distill.temperature", distill.temperature,
          between(0.01, 1000, fixed).with(needs::a_teacher_or_outputs),
          "number by which the scores of both models are divided before they are compared");
    visit("distill.weight", distill.weight, between(0, 1, fixed).with(needs::a_teacher_or_outputs),
          "the loss is this weight times the distance from the teacher's outputs, plus (1 - this "
          "weight) times the loss on the targets");
    visit("distill.hidden", distill.hidden, such_as(check_hidden, fixed).with(needs::a_teacher),
          "hidden layers whose outputs also learn to match the teacher's: a list of pairs "
          "LAYER:TEACHER-LAYER, or of single names if both models have the layer; or none");
    visit("distill.hidden-weight", distill.hidden_weight,
          between(0, 1e6, fixed).with(needs::hidden_layers),
          "weight with which the sum of the distances between hidden layers is added to the loss");

    auto& prune = deck.prune;
    visit("prune.pattern", prune.pattern, such_as(check_pattern, fixed),
          "pattern of the weights to remove: none, unstructured (single weights), channels (whole "
          "channels), or N:M, such as 2:4, which keeps N of every M neighbouring weights");
    visit("prune.target", prune.target,
          such_as(check_prune_target, fixed).with(needs::pruned_channels),
          "with prune.pattern = channels: macs SHARE, where SHARE is the share of the "
          "multiply-adds to keep, such as macs 0.5");
    visit("prune.multiple", prune.multiple, between(1, 1024, fixed).with(needs::pruned_channels),
          "with prune.pattern = channels: the number of channels that a layer keeps is a multiple "
          "of this number");
    visit("prune.sparsity", prune.sparsity, between(0.001, 0.999, fixed).with(needs::unstructured),
          "with prune.pattern = unstructured: share of the weights to remove");
    visit("prune.score", prune.score, one_of({"magnitude", "taylor"}, fixed).with(needs::pruning),
          "which weights to keep: those with the largest absolute values (magnitude), or those "
          "whose removal would change the loss most, estimated to first order (taylor)");
    visit("prune.scope", prune.scope,
          one_of({"global", "layer"}, fixed).with(needs::pruning_by_degrees),
          "with prune.pattern = unstructured or channels: compare scores across the whole model "
          "(global), or within each layer (layer)");
    visit(
        "prune.except", prune.except, any(fixed).with(needs::pruning),
        "weights that are never removed: a list of name patterns such as *.output.weight; or none");
    visit("prune.begin", prune.begin, at_least(0, fixed).with(needs::pruning),
          "step after which the first weights are removed");
    visit("prune.end", prune.end, at_least(0, fixed).with(needs::pruning_by_degrees),
          "with prune.pattern = unstructured or channels: step after which the last weights are "
          "removed; from prune.begin to this step, the removed share grows on a cubic schedule; 0: "
          "all weights are removed at prune.begin");
    visit("prune.every", prune.every, at_least(1, fixed).with(needs::pruning_by_degrees),
          "with prune.pattern = unstructured or channels: steps between removals");

    visit("quantise.aware", deck.quantise.aware, any(fixed),
          "train with quantisation: layers round their weights and inputs as in int8, and learn "
          "the scales that lockstep checkpoint quantise uses");

    auto& privacy = deck.privacy;
    visit("privacy.noise", privacy.noise, between(0, 1e6, fixed),
          "differential privacy of training samples (DP-SGD): standard deviation, relative to "
          "privacy.clip, of the noise that is added to the sum of the samples' gradients; 0: off");
    visit("privacy.clip", privacy.clip, between(1e-9, 1e9, fixed).with(needs::privacy),
          "L2 norm to which each sample's gradient is clipped");
    visit("privacy.delta", privacy.delta, between(1e-30, 0.5).with(needs::privacy),
          "delta at which epsilon is reported");
    visit("privacy.epsilon", privacy.epsilon, at_least(0).with(needs::privacy),
          "end training before epsilon exceeds this value; 0: no limit");
    visit("privacy.accountant", privacy.accountant, one_of({"rdp", "prv"}).with(needs::privacy),
          "how epsilon is computed: by the Renyi divergence (rdp), or from the distribution of the "
          "privacy loss, which gives a smaller epsilon (prv)");
    visit("privacy.key", privacy.key,
          such_as(check_paths).naming(Named::output).with(needs::privacy),
          "file with the secret key from which the noise and the samples are drawn; the file is "
          "created if it does not exist; default: privacy.key in run.directory");

    visit("communication.backend", deck.communication.backend,
          one_of({"auto", "mpi", "nccl", "oneccl"}), "library that exchanges gradients");
    auto& communication = deck.communication;
    visit("communication.bucket-mb", communication.bucket_mb, buckets(),
          "size of a gradient bucket in megabytes; the gradients in a bucket are sent together");
    visit("communication.first-bucket-mb", communication.first_bucket_mb, buckets(),
          "size in megabytes of the bucket that the backward pass completes first");
    visit("communication.compression", communication.compression,
          one_of({"none", "fp16", "bf16", "powersgd"}, fixed),
          "with fp16 and bf16, every sum of gradients is rounded to 16 bits; with powersgd, "
          "low-rank matrices are exchanged instead of gradients");
    visit("communication.powersgd-rank", communication.powersgd_rank,
          between(1, 64, fixed).with(needs::powersgd),
          "rank of the matrices that powersgd exchanges");
    visit("communication.reduction", communication.reduction, one_of({"ordered", "native"}, fixed),
          "sum gradients in a fixed order, which gives bitwise identical results on any number of "
          "ranks (ordered), or in an order that the library chooses (native)");
    visit("communication.unused-parameters", communication.unused_parameters, any(fixed),
          "allow steps in which a parameter has no gradient on any replica, and leave the "
          "parameter as it is in such a step; false: such a step ends the run with an error");
    visit(
        "communication.static-graph", communication.static_graph, any(fixed),
        "assume that parameters without a gradient in the first step never have one, so that their "
        "buckets are sent earlier; if such a parameter gets a gradient later, the run fails");
    visit("communication.broadcast-buffers", communication.broadcast_buffers, any(fixed),
          "every replica starts each step with the buffers of replica 0; false: every replica "
          "keeps its own buffers");
    visit("communication.sync-batch-norm", communication.sync_batch_norm, any(fixed),
          "compute the statistics of batch norm over all replicas");
    visit("communication.timeout-seconds", deck.communication.timeout_seconds,
          between(1, longest_s), "longest time in seconds to wait for another rank or its device");
    visit("communication.check-replicas-every", deck.communication.check_replicas_every,
          at_least(0), "steps between comparisons of the weights of all ranks; 0: never");

    visit("check.compute-every", deck.check.compute_every, at_least(0),
          "steps between comparisons of what hosts compute: another host repeats the forward and "
          "backward of one replica; 0: never");

    visit("checkpoint.every-steps", deck.checkpoint.every_steps, at_least(0),
          "steps between checkpoints; 0: write only the first and the last checkpoint");
    visit("checkpoint.every-minutes", deck.checkpoint.every_minutes, between(0, longest_s),
          "minutes between checkpoints; 0: off");
    visit("checkpoint.keep", deck.checkpoint.keep, between(1, 1 << 20),
          "number of checkpoints to keep");
    visit("checkpoint.asynchronous", deck.checkpoint.asynchronous, any(),
          "write checkpoints while training continues");
    visit("checkpoint.resume", deck.checkpoint.resume,
          such_as(check_paths, AtResume::renewed).naming(Named::model),
          "checkpoint to resume from: auto (the newest intact checkpoint), none, or a file");
    visit("checkpoint.best", deck.checkpoint.best, any(),
          "metric by which the model in best.h5 is chosen; default: task.metric");
    visit("checkpoint.local", deck.checkpoint.local,
          such_as(check_run_directory).naming(Named::output),
          "directory on a fast disk; new checkpoints are written there and then copied to the "
          "run's directory");

    visit("fault-tolerance.restarts", deck.fault_tolerance.restarts, at_least(0),
          "lockstep launch gives up after this number of consecutive restarts without a newer "
          "checkpoint; 0: no restarts");
    visit("fault-tolerance.recovery-timeout-seconds", deck.fault_tolerance.recovery_timeout_seconds,
          between(1, longest_s),
          "longest time in seconds from a restart to the first step after it");
    visit("fault-tolerance.memory-copy-every", deck.fault_tolerance.memory_copy_every,
          such_as(check_copy_interval),
          "steps between copies of the run's state in the memory of two hosts, from which the job "
          "continues after a loss; none: no copies; auto: as often as training is at most 0.5 % "
          "slower, where lockstep launch restarts the run, else none");
    visit("fault-tolerance.straggler-factor", deck.fault_tolerance.straggler_factor, at_least(0),
          "a run ends as after a loss when waiting for one rank makes at least 20 steps take more "
          "than this many times as long; 0: never");

    visit("monitor.log-every", deck.monitor.log_every, at_least(1), "steps between step records");
    visit("monitor.progress", deck.monitor.progress, one_of({"auto", "bar", "plain", "none"}),
          "how progress is shown during training: as a bar, as plain lines, or not at all (none); "
          "auto: a bar on a terminal, else lines");
    visit("monitor.tensorboard", deck.monitor.tensorboard, any(),
          "write TensorBoard event files in the run's directory");
    visit("monitor.histograms", deck.monitor.histograms,
          one_of({"none", "weights", "gradients"}).with(needs::tensorboard),
          "histograms that are written to event files at the end of each epoch: of the weights "
          "(weights), or of both weights and gradients (gradients)");
    visit("monitor.images", deck.monitor.images, between(0, 1 << 20),
          "number of samples of the run's first batch that are saved in samples/ of the run's "
          "directory and in event files, if they are images, video clips or volumes");
    visit("monitor.plots", deck.monitor.plots, any(), "draw plots of the metrics when a run ends");
    visit("monitor.weight-hash", deck.monitor.weight_hash, one_of({"auto", "true", "false"}),
          "write a hash of the weights to each step record, to find where two runs diverge, and for "
          "lockstep replay: true, false, or auto, unless no host has all weights "
          "(optimizer.update = fully-sharded)");

    visit("profile.steps", deck.profile.steps, such_as(check_steps),
          "range of steps for which a timeline is recorded, such as 100-110; for a job that is "
          "already running, use lockstep profile");
    visit("profile.memory", deck.profile.memory, any(),
          "show the allocated memory in timelines, by the part of the step that allocated it");

    visit("train.epochs", deck.train.epochs, between(0, max_epochs),
          "passes over data.train; 0: no limit");
    visit("train.steps", deck.train.steps, at_least(0), "optimizer steps; 0: no limit");
    visit("train.validate-every", deck.train.validate_every, at_least(0),
          "steps between validations; 0: validate after each epoch");
    visit("train.patience", deck.train.patience, between(0, 1e9),
          "early stopping: end the run after this number of validations in a row without "
          "improvement of the metric that chooses the best model; 0: off");
    visit("train.minimum-change", deck.train.minimum_change,
          between(0, 1e9).with(needs::early_stopping),
          "early stopping: largest change of the metric that is no improvement");
}

} // namespace lockstep::config
