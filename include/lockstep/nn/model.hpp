#pragma once

#include "lockstep/data/batch.hpp"
#include "lockstep/nn/fields.hpp"
#include "lockstep/nn/hidden_states.hpp"
#include "lockstep/nn/replica_sums.hpp"

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::nn {

/// The inputs that a model gets, and the outputs that it must return.
struct Interface {
    std::vector<std::int64_t> sample_shape; ///< of the first input, without the batch
    std::int64_t outputs = 0;     ///< of a sample, or of each of its positions or time steps
    bool recompute = false;       ///< blocks are run again in backward instead of kept
    bool sync_batch_norm = false; ///< batch norm over all replicas
    std::vector<data::FieldInfo> inputs{};  ///< all of them; empty: one, of float32, not ragged
    std::vector<data::FieldInfo> targets{}; ///< for a model that computes its own loss
    bool of_samples = false;                ///< outputs are of a sample, not of its positions
    bool quantise_aware = false;            ///< layers with weights compute as if in int8
    bool continuous = false;                ///< of a policy: outputs are the means of an action
    bool channels_last = false;             ///< how accelerators keep images in memory
    bool autocast = false;                  ///< precision.compute: operators compute in 16 bits
    bool on_device = false;                 ///< training is on an accelerator
    bool loses_channels = false;            ///< training removes channels
    bool teaches = false;                   ///< the model is only evaluated, as a teacher
};

/// The key from which a model's layers draw random numbers in one forward pass. The replica sets it
/// before the pass, from (seed, step, replica, micro-batch), so that no number depends on which
/// rank runs the replica, or on what ran before.
struct RandomKey {
    std::uint64_t value = 0;
};

/// A tensor of a file, or a part of one, that a parameter of ours is read from.
struct WeightSource {
    std::string name;
    bool transposed = false; ///< the file has [in, out], the parameter [out, in]
    int part = 0;            ///< which part, where the output dimension holds `parts` parameters
    int parts = 1;
};

/// What the description of another program's model says that ours is not.
struct Contradiction {
    std::string says; ///< "rope_theta = 500000"
    std::string set;  ///< "model.rotary-base = 500000"; empty: no key makes them the same
};

/// A neural network that Lockstep trains.
class Model : public torch::nn::Module {
  public:
    /// One instance is called by one thread at a time, several instances at once by several threads
    /// where `runs_on_threads`.
    ///
    /// Shape   inputs[0] [n, sample…] float32; returns [n, outputs], or [n, outputs, place…] where
    ///         a task learns something about each position
    /// Throws  LibTorch's exceptions, which end the run with 64 and the shapes of the batch
    virtual torch::Tensor forward(Fields const& inputs) = 0;

    /// A hash of what the model is made from besides its deck, such as a file of code; 0: nothing.
    /// A run resumes only with the same value, or with --force.
    virtual std::uint64_t fingerprint() const { return 0; }

    /// What the model does differently from what its deck asks for; empty: nothing.
    virtual std::string remark() const { return {}; }

    /// Whether several instances may run at once on threads of one process.
    virtual bool runs_on_threads() const { return true; }

    /// Whether forward reads parameters on its caller's thread alone, and by LibTorch's operators
    /// alone, so that it may begin before all of them have arrived.
    virtual bool reads_by_operators() const { return true; }

    /// Whether forward does the same work on a device for all batches of one shape, with the same
    /// memory for what it keeps, so that the device may record it once and replay it. A forward
    /// that waits for the device, or copies values to it, is detected, and is not recorded anyway.
    virtual bool is_replayable() const { return true; }

    /// Whether numbers of channels that operators get besides their weights (the groups of a
    /// convolution, the shape of a layer norm) are always those of their tensors, so that channels
    /// which reach these operators may be removed.
    virtual bool takes_sizes_from_tensors() const { return false; }

    /// Whether each layer follows its own mode, training or evaluation. Code in a file may not.
    virtual bool takes_modes_of_layers() const { return true; }

    /// Makes buffers() hold the values that forward has left. Called after backward, which may
    /// still need the previous ones.
    virtual void settle_buffers() const {}

    /// Names under which a file of another program may hold a parameter's values; the first that
    /// the file has with a matching shape is used.
    virtual std::vector<WeightSource> other_names(std::string const& /*parameter*/) const {
        return {};
    }

    /// In what the model differs from the one that such a program describes in `config`, which lies
    /// beside the file of weights (config.json). A model that does not know this format: in
    /// nothing.
    ///
    /// Throws  Error 65 when the file is damaged; 66 or 74 when it cannot be read
    virtual std::vector<Contradiction>
    contradictions(std::filesystem::path const& /*config*/) const {
        return {};
    }

    void set_random_key(std::uint64_t key) { random_key_->value = key; }
    /// Sets the replica that this module computes from now on, for layers that exchange sums.
    void set_replica(ReplicaLink const& link) { *replica_link_ = link; }
    /// Lets forward keep the outputs of the model's layers in `states`, which must exist until this
    /// is called again; null: nowhere.
    void keep_hidden(HiddenStates* states) { hidden_link_->states = states; }

  protected:
    std::shared_ptr<RandomKey> const& random_key() const { return random_key_; }
    std::shared_ptr<ReplicaLink> const& replica_link() const { return replica_link_; }
    std::shared_ptr<HiddenLink> const& hidden_link() const { return hidden_link_; }

  private:
    std::shared_ptr<RandomKey> random_key_ = std::make_shared<RandomKey>();
    std::shared_ptr<ReplicaLink> replica_link_ = std::make_shared<ReplicaLink>();
    std::shared_ptr<HiddenLink> hidden_link_ = std::make_shared<HiddenLink>();
};

} // namespace lockstep::nn
