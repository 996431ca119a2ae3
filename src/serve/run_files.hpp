#pragma once

#include "base/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::serve {

/// Files in the directory of a run or of a search. Files that are missing, or cannot be shown,
/// count as empty; so do links, which may lead out of it.

/// A regular file below a directory, opened for reading; `name`: "log.txt", "plots/loss.png".
Descriptor open_below(std::filesystem::path const& directory, std::filesystem::path const& name);

/// Bytes of log.txt.
std::uint64_t log_bytes(std::filesystem::path const& run);

/// Up to 128 KiB of whole lines of log.txt that end at `end`, or at the file's end: a JSON object
/// with `first` and `end`, the bytes between which `text` lies.
std::string log_json(std::filesystem::path const& run, std::uint64_t end);

/// The records of history.jsonl as a list of JSON.
std::string history_json(std::filesystem::path const& run);

/// The samples with the largest losses, as `lockstep evaluate` wrote them to the run's folder
/// "worst": the records of worst.jsonl as a list of JSON.
std::string worst_json(std::filesystem::path const& run);

/// The records of search.jsonl as a list of JSON, without measured values of single classes.
std::string search_json(std::filesystem::path const& search);

/// Bytes of search.jsonl.
std::uint64_t search_bytes(std::filesystem::path const& search);

std::string deck_text(std::filesystem::path const& run);

/// A folder of a run's directory with pictures.
enum class Gallery { plots, samples, worst };

/// Names of the PNG files in it, sorted.
std::vector<std::string> picture_names(std::filesystem::path const& run, Gallery gallery);

/// The file at this index of the list; empty where there is none.
std::string picture_bytes(std::filesystem::path const& run, Gallery gallery, std::size_t place);

} // namespace lockstep::serve
