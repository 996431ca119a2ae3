#pragma once

#include <functional>
#include <memory>

namespace lockstep::program {

struct ForgottenActivations;

/// While it exists, autograd records what this thread computes, but the tensors that it saves for
/// backward are dropped. When backward needs the first of them, `again` is called once to compute
/// all of them again; each is freed when it is used. The graph of autograd is that of an ordinary
/// forward, so the order of all sums is, too (torch.utils.checkpoint does this in Python with
/// saved_tensors_hooks; LibTorch has the hooks, but not their registration).
class ActivationsForgotten {
  public:
    explicit ActivationsForgotten(std::function<void()> again);
    ~ActivationsForgotten();
    ActivationsForgotten(ActivationsForgotten const&) = delete;
    ActivationsForgotten& operator=(ActivationsForgotten const&) = delete;

  private:
    std::shared_ptr<ForgottenActivations> before_;
};

} // namespace lockstep::program
