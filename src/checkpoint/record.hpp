#pragma once

#include "h5/file.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace lockstep::checkpoint {

/// The small values besides the arrays. A name occurs in `integers` or in `reals`, not in both.
struct Record {
    std::map<std::string, std::int64_t> integers; ///< step, epoch, cursor, seed …: state
    std::map<std::string, double> reals;      ///< best_metric, loss_scale …: state, bit by bit
    std::string history;                      ///< metric history, JSON lines: state
    std::string deck;                         ///< the resolved deck: not state
    std::map<std::string, std::string> notes; ///< time, hosts, attempt, ranks …: not state

    friend bool operator==(Record const&, Record const&) = default;
};

/// The group that holds everything but arrays and views; no array or view may be below it.
inline constexpr char const* record_group = "record";
/// The note of a model that has fewer channels than its deck says: the shapes of its tensors.
inline constexpr char const* shapes_note = "shapes";
/// The note that says what the samples are that a model was trained on, as JSON.
inline constexpr char const* facts_note = "facts";
/// The note of a model file with the paths of its buffers of real values, a line each.
inline constexpr char const* buffers_note = "buffers";
/// The note of weights without a deck: the keys of their model, their task and their samples, as a
/// JSON object of texts.
inline constexpr char const* model_note = "model";
/// The integer of a federation's global model: the rounds that it comes from, 0 for the first one.
inline constexpr char const* federated_rounds = "federated_rounds";
inline constexpr char const* checkpoint_format = "lockstep checkpoint";
inline constexpr char const* model_format = "lockstep model";

/// A value of a record. Throws Error 65 when the record lacks it.
std::int64_t integer_of(Record const& record, std::string const& name);
/// The same for a value that not all checkpoints have; `otherwise` where it is missing.
std::int64_t integer_of(Record const& record, std::string const& name, std::int64_t otherwise);
/// As the first.
double real_of(Record const& record, std::string const& name);

/// Writes the record: integers and reals as attributes of /record, texts and notes as datasets
/// below it; and what kind of file it is as attributes of the root.
/// Throws  Error 70 when a name is both an integer and a real number
void write_record(h5::File& file, Record const& record, std::string const& format);

/// Reads it back. Throws Error 65 when the file is not of `format`.
Record read_record(h5::File const& file, std::string const& format);

} // namespace lockstep::checkpoint
