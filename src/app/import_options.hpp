#pragma once

#include "base/arguments.hpp"
#include "import/hdf5_source.hpp"
#include "import/idx_source.hpp"
#include "import/image_source.hpp"
#include "import/import.hpp"
#include "import/series_source.hpp"
#include "import/speech_source.hpp"
#include "import/text_source.hpp"
#include "import/video_source.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace lockstep::app {

/// What the command line of an import says, for the kind of source that it names.
struct ImportTold {
    import::ImportOptions common;
    std::string split_by;
    import::IdxImport idx;
    import::ImageImport images;
    import::VideoImport video;
    import::SpeechImport speech;
    import::TextImport text;
    import::SeriesImport series;
    import::Hdf5Import hdf5;
    std::string alpha = "drop";
    std::string units = "characters";
    std::string series_type = "f32";
    std::set<std::string> given; ///< names of the options
};

/// An option that has no effect with another one, or without it.
struct ImportRule {
    std::string option;
    enum class Effect { without, with } only; ///< where it has one
    std::string other;
    std::string why;
};

/// A kind of source: the options that only it has, and the function that opens a path as such a
/// source.
struct ImportKind {
    std::string name;
    std::string source; ///< what SOURCE is, for --help
    std::vector<Option> rows;
    std::vector<ImportRule> rules{};
    std::function<std::unique_ptr<import::ImportSource>(std::filesystem::path const&)> make;
};

/// All kinds; their options are stored in `told`, and their sources are made from it.
std::vector<ImportKind> import_kinds(ImportTold& told);

/// Their names, in the same order.
std::vector<std::string> import_kind_names();

/// Options of every kind and those of `kind`, SOURCE and OUT; KIND too where `kind` has no name.
Options import_options(ImportTold& told, ImportKind const& kind);

/// Stores what a command line says in `told`; `words` are those behind KIND. Returns SOURCE and
/// OUT.
///
/// Throws  Error 64, also for an option that would have no effect
std::vector<std::string> parse_import(ImportTold& told, ImportKind const& kind,
                                      std::vector<std::string> const& words);

} // namespace lockstep::app
