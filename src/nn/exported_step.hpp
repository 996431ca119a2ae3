#pragma once

#include "lockstep/nn/registry.hpp"
#include "program/compiled_step.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::nn {

/// The compiled step of an exported program, where the deck asks for it and it fits the deck.
class ExportedStep {
  public:
    /// `wish`: model.compiled. `parameters`: those of `train`.
    ///
    /// Throws  Error 64 for an unknown wish, and where a step is required that does not fit; as
    ///         program::CompiledStep
    ExportedStep(program::Archive const& archive, std::string const& wish,
                 Interface const& interface, program::Program const& train,
                 std::vector<torch::Tensor> parameters);

    bool is_used() const noexcept { return step_.has_value(); }
    /// Why a preferred step is not used; empty where it is, or where none is wished for.
    std::string const& remark() const noexcept { return remark_; }
    bool takes(std::vector<torch::Tensor> const& arguments) const {
        return is_used() && program::CompiledStep::takes(arguments);
    }

    /// As program::CompiledStep::run.
    ///
    /// Throws  Error 64 where channels were removed since it was compiled
    std::vector<torch::Tensor> run(std::vector<torch::Tensor> const& arguments);
    void settle() const;

  private:
    std::int64_t elements() const;

    std::string file_;
    std::optional<program::CompiledStep> step_;
    std::vector<torch::Tensor> parameters_;
    std::int64_t elements_ = 0; ///< of the parameters, when it was compiled
    std::string remark_;
};

} // namespace lockstep::nn
