#pragma once

#include "checkpoint/snapshot.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// Where everything but arrays and views lies; no array and no view may be below it.
inline constexpr char const* record_group = "record";
inline constexpr char const* layout_path = "record/layout";
inline constexpr char const* checkpoint_format = "lockstep checkpoint";
inline constexpr char const* model_format = "lockstep model";

/// Writes the record: integers and reals as attributes of /record, texts and notes as datasets
/// below it; and what kind of file it is as attributes of the root.
/// Throws  Error 70 when a name is an integer and a real
void write_record(h5::File& file, Record const& record, std::string const& format);

/// Reads it back. Throws Error 65 when the file is not of `format`.
Record read_record(h5::File const& file, std::string const& format);

/// The arrays and views as one text, the same for the same layout.
std::string layout_text(std::vector<Array> const& arrays, std::vector<h5::View> const& views);

/// The arrays and views of such a text. Throws Error 65 that names `path`.
void read_layout(std::string const& text, std::filesystem::path const& path,
                 std::vector<Array>& arrays, std::vector<h5::View>& views);

/// That a file has not the array, or the like, that is asked for.
Error lacking(std::filesystem::path const& path, std::string const& what);

/// Makes an empty file and throws unless it may grow to `bytes`: 73 when it cannot be made, 74 when
/// disk, quota or limit are too small. HDF5 is to replace it: asked before HDF5 is, since a failed
/// close of a file breaks the whole library (1.10.8: it crashes when MPI ends).
void try_space(std::filesystem::path const& path, std::uint64_t bytes);

/// At least what HDF5 and the record take beside the arrays.
std::uint64_t overhead_of(Record const& record, std::size_t datasets);

} // namespace lockstep::checkpoint
