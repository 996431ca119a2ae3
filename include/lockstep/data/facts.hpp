#pragma once

#include "lockstep/data/batch.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

/// What samples and their numbers mean: of a data set, what its files say; of a model, what it was
/// trained on. What is empty or 0 is not known.
struct Facts {
    std::vector<FieldInfo> inputs{};
    std::vector<FieldInfo> targets{};
    std::vector<std::string> classes{}; ///< as they are named, in the order of the labels
    std::int64_t class_count = 0;       ///< also of classes without names
    /// What the first input is normalised by; for u8 in units of 1/255.
    ///
    /// Shape  [channels], [1], or [0] where it is not normalised
    std::vector<double> mean{};
    std::vector<double> std{};
    bool channels_last = false; ///< several of them belong to the last dimension, not to the first
    /// What the values to learn are normalised by.
    ///
    /// Shape  [values of the first target], [1] for all of them, or [0] where they are learnt as
    ///        they are
    std::vector<double> target_mean{};
    std::vector<double> target_std{};
    bool scale_known = false;                ///< whether that is known, also where it is nothing
    std::vector<std::string> columns{};      ///< of a table, or of a series
    double sample_rate = 0;                  ///< of sound, in Hz
    std::vector<std::uint8_t> token_bytes{}; ///< of text that each token stands for
    std::string tokenizer{};                 ///< tokenizer.json

    bool operator==(Facts const&) const = default;
};

/// What a model of known facts does with a set: it is used, or measured, as it is; or it is trained
/// further, and may learn other classes from samples of another size.
enum class Use { as_it_is, trained_further };

/// In what samples of `set` mean something else than those of `known`, whatever they are normalised
/// by; `whose` are the latter, such as "data.train". Empty: in nothing.
std::string difference(Facts const& set, Facts const& known, std::string const& whose,
                       Use use = Use::as_it_is);

/// What a model that is trained further learns to call otherwise: lines for the user.
std::vector<std::string> renamed(Facts const& set, std::string const& name, Facts const& known,
                                 std::string const& whose);

/// What is told of a set, called `name`, that names another mean and std than those of `known`,
/// which are used: a line for the user, or nothing to tell. It warns where the numbers look as if
/// they were in other units.
std::string other_scale(Facts const& set, std::string const& name, Facts const& known,
                        std::string const& whose);

/// `facts`, and what only `others` know.
Facts completed(Facts facts, Facts const& others);

} // namespace lockstep::data
