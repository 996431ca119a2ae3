#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace lockstep::nn {

/// The masks of a forward pass that a device records and replays. The host draws masks, so a mask
/// drawn during recording would be that of every replay. Here they are device tensors at fixed
/// addresses, drawn again before each replay from that pass's key.
///
/// A pass that is not recorded notes which masks there will be; only these can be recorded, since
/// their memory must not be used for anything else in between.
class DropoutMasks {
  public:
    struct Form {
        std::uint64_t layer = 0;
        std::vector<std::int64_t> sizes;
        torch::TensorOptions options;
        double keep = 1; ///< probability that an element is 1
    };
    enum class Pass { noted, recorded };

    /// While it exists, layers that this thread runs note their masks, or use those that are here.
    class Scope {
      public:
        Scope(DropoutMasks& masks, Pass pass);
        Scope(Scope const&) = delete;
        Scope& operator=(Scope const&) = delete;
        ~Scope();

      private:
        friend class DropoutMasks;
        DropoutMasks& masks_;
        Pass pass_;
        Scope* before_;
    };

    /// The mask of a layer in the pass of `key`: of ones and zeros, and the same on every device.
    ///
    /// Throws  std::logic_error in a recorded pass, where no pass has noted this one
    static torch::Tensor mask(Form const& form, std::uint64_t key);
    /// Whether the work that this thread enqueues on a device is being recorded: it must not
    /// contain values from the host.
    static bool is_recorded();

    /// Draws all masks, after the work that is on the device's current stream.
    void draw(std::uint64_t key);

  private:
    struct Noted {
        Form form;
        torch::Tensor values; ///< on the device, once they were drawn
    };

    Noted* find(Form const& form);

    std::vector<Noted> noted_;
};

} // namespace lockstep::nn
