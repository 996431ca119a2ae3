#pragma once

namespace lockstep::config {

/// What the value of a key names.
enum class Named {
    nothing,
    samples,  ///< files of samples, or of what belongs to each sample
    datasets, ///< in files of samples
    model,    ///< a file with a model or its weights, or a deck that describes one
    code,     ///< a library, where the value has that form
    cache,    ///< a directory for copies of samples, where the value has that form
    output,   ///< a file or directory that a run writes
};

} // namespace lockstep::config
