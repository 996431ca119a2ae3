#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::import {

/// What was said in a recording.
struct Transcript {
    std::filesystem::path file;
    std::string text;
    std::string group; ///< empty: none said
    std::string set;
    std::int64_t line = 0; ///< where it stands
};

struct TranscriptOptions {
    std::filesystem::path path;
    std::filesystem::path source; ///< the directory that the files' names begin in
    std::string text_column;
    std::string group_column; ///< empty: none
};

struct Transcripts {
    std::vector<Transcript> rows;
    std::vector<std::string> remarks; ///< on the table's quotes and lines
};

/// Transcripts of a table, or of lines ( NAME "TEXT" ), which stand for NAME.wav.
///
/// Throws  Error 66 or 65, with file and line
Transcripts read_transcripts(TranscriptOptions const& options);

} // namespace lockstep::import
