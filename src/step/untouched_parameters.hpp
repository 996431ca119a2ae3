#pragma once

#include "lockstep/nn/model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

/// Notices when a forward changes the model's parameters (see nn/writes.hpp): LibTorch counts the
/// changes of each tensor. What code of a user's changes past LibTorch is found by comparing the
/// values, in passes number 1, 2, 4, 8….
class UntouchedParameters {
  public:
    /// `name`: of the model, in the deck. `compares`: whether it calls code of a user's.
    UntouchedParameters(nn::Model const& model, std::string name, bool compares);

    /// Call it before a forward.
    void begin();
    /// Call it after that forward.
    ///
    /// Throws  Error 64 with the name of the parameter
    void require() const;

  private:
    struct Parameter {
        std::string name;
        torch::Tensor values;
        std::int64_t changes = 0;
        std::uint64_t hash = 0;
    };

    std::string name_;
    bool compares_;
    std::vector<Parameter> parameters_;
    std::uint64_t passes_ = 0;
    bool hashed_ = false; ///< in this pass
};

} // namespace lockstep::train
