#pragma once

#include "import/label_file.hpp"
#include "import/source.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::import {

struct SpeechImport {
    std::filesystem::path source{};
    LabelFile labels{}; ///< classes, as of images, where there are no transcripts
    /// A table with columns file and text, or lines ( NAME "TEXT" ) as in festvox' txt.done.data.
    std::filesystem::path transcripts{};
    std::string split_by{};    ///< a column of the table
    std::string text = "text"; ///< the column with the transcripts
    bool words = false;        ///< symbols are separated by blanks; else they are characters
    bool lowercase = false;    ///< of any script
    std::string drop{};        ///< characters that are left out
    std::string symbols{};     ///< characters, or words with commas; empty: all that occur, sorted
    bool raw = false;          ///< the recording itself instead of features
    std::uint64_t bands = 40;
    int rate = 0;            ///< of all recordings, in Hz; 0: that of the first
    bool unlabelled = false; ///< samples have no targets, and files any place below the source
    std::vector<std::filesystem::path> more{}; ///< unlabelled: files and folders besides the source
};

/// Recordings with transcripts or classes. Inputs are ragged f32: [frames, bands] of log-mel
/// features (`LogMel`), or the values of the recording; targets are the indices of a transcript's
/// symbols among the class names (ragged), or the class.
std::unique_ptr<ImportSource> speech_source(SpeechImport const& options);

} // namespace lockstep::import
