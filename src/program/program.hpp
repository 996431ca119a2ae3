#pragma once

#include "program/archive.hpp"
#include "program/graph.hpp"
#include "program/module_outputs.hpp"
#include "program/tensors.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::program {

struct Description;

/// A parameter or a constant of a program that it changes in place.
struct Write {
    std::string tensor;
    std::string by; ///< the operator, and its line of Python
    bool is_parameter = false;
    bool is_trained = false;
};

/// One program of torch.export.export: a graph of LibTorch's operators, and its tensors. Like eager
/// PyTorch, it builds an autograd graph, draws from LibTorch's generator, and changes buffers in
/// place. A handle: copies share their tensors.
class Program {
  public:
    /// `tensors`: by name, the ones to use; of the others it makes its own.
    ///
    /// Throws  Error 65 for a damaged archive; 64 for a program that cannot be run, with the
    ///         operator, the line of Python and what to do
    Program(Archive const& archive, std::string const& name, Tensors tensors);

    /// One of each set of tied weights, by its first name. Buffers by their names, except those
    /// that are neither float32 nor int64 and that the program never changes.
    std::vector<std::pair<std::string, at::Tensor>> parameters() const;
    std::vector<std::pair<std::string, at::Tensor>> buffers() const;

    /// All of its tensors by their names; tied weights under each of theirs.
    Tensors const& tensors() const { return tensors_; }

    /// What it may change in place besides its inputs and buffers, in evaluation as in training.
    std::vector<Write> writes() const;
    /// From now on, these parameters are buffers.
    void keep_as_buffers(std::set<std::string> const& names);

    std::size_t inputs() const;
    std::size_t outputs() const;
    /// Whether it draws random numbers.
    bool draws() const;
    /// An operator that behaves differently in training and in evaluation, with its line of Python;
    /// empty where there is none.
    std::string depends_on_mode() const;

    /// From now on, backward computes again what it needs of forward, block by block.
    void recompute();

    /// The parameters that only this operator uses, and only as its argument `place`; operators in
    /// nested graphs do not count.
    std::set<std::string> used_only_by(std::string const& target, std::size_t place) const;

    /// From now on `instead` runs where the program names this operator, as "aten.relu.default".
    void replace(std::string const& target, Replacement instead);

    /// The same program, which refuses (Error 64) an operator of a library that changes an argument
    /// although its schema does not say so.
    Program watched() const;

    /// Constants are moved to the inputs' device; parameters and buffers are where the caller put
    /// them.
    ///
    /// Shape   inputs as exported, except for symbolic sizes
    /// Throws  Error 64 for inputs that it was not exported for; else as `execute`
    std::vector<c10::IValue> run(std::vector<at::Tensor> const& inputs);
    /// The same; `keep` gets the outputs of the model's modules. After `recompute` not supported.
    std::vector<c10::IValue> run(std::vector<at::Tensor> const& inputs, KeepOutputs const& keep);

    /// Checks that `run` would accept these inputs.
    ///
    /// Throws  Error 64 with the reason, where it would not
    void require_fit(std::vector<at::Tensor> const& inputs) const;

  private:
    std::vector<c10::IValue> values_of(std::vector<at::Tensor> const& inputs);

    std::shared_ptr<Description const> description_;
    Tensors tensors_;
    std::optional<std::vector<ModuleOutput>> module_outputs_; ///< once they have been asked for
};

} // namespace lockstep::program
