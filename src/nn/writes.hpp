#pragma once

#include <string>

namespace lockstep::nn {

// All that a model's forward may change besides its outputs, and who looks after it:
//
// - buffers (float32, int64). In training, train::Buffers: every replica starts a step from replica
//   0's, or its own, and checkpoints hold them. In all other forwards EvaluationMode: each begins
//   with the same, and leaves nothing.
// - parameters that are not trained, of an exported program or a script. They are then registered
//   as buffers.
// - its inputs: nobody reads a batch after the model but the task, and who gives the same values to
//   two models copies them.
// - LibTorch's generator: the model seeds it from its random key before it draws.
//
// All else is refused before the first step: ranks and replicas share trained parameters, and no
// checkpoint holds a constant of a program or an attribute of a script. What a program or a script
// changes follows from its graph. For a plug-in or a library of operators, which may do anything,
// train::UntouchedParameters watches.

/// What forward changes although it may not.
struct ForbiddenWrite {
    std::string model;   ///< its file, or its name in the deck
    std::string tensor;  ///< "parameter words.weight"
    std::string by{};    ///< the operator and its line, where they are known
    bool trained = true; ///< a parameter that the optimizer changes
};

/// Throws  Error 64
[[noreturn]] void refuse_write(ForbiddenWrite const& write);

} // namespace lockstep::nn
