#include "checkpoint/content.hpp"

#include "base/text.hpp"
#include "checkpoint/checksum_header.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::checkpoint {

namespace {

/// HDF5's superblock, then the root's header, of which the first part holds a name at least; the
/// rest is not far.
constexpr std::size_t root_at = 48;
constexpr std::size_t root_bytes = 131;
constexpr std::size_t near_bytes = 4096;
constexpr std::string_view root_mark = "OHDR";

} // namespace

Content content_of(File const& file) {
    auto const at = checksum_header_bytes + root_at;
    if (file.size() < at + root_bytes) {
        return Content::unknown;
    }
    std::string near(std::min<std::uint64_t>(file.size() - at, near_bytes), '\0');
    file.read_at(at, std::as_writable_bytes(std::span(near)));
    auto const holds = [&](std::string_view name, std::size_t bytes) {
        return std::string_view(near).substr(0, bytes).find(name) != std::string_view::npos;
    };
    return !near.starts_with(root_mark) ? Content::unknown
           // Layers may have these names, further on.
           : holds(quantised_group, root_bytes) ? Content::quantised
           // The state of a federation's server stands where models name their format.
           : holds("server", root_bytes) || holds("lockstep model", near_bytes) ? Content::model
           : holds(outputs_view, root_bytes)                                    ? Content::outputs
                                             : Content::checkpoint;
}

char const* name_of(Content content) {
    switch (content) {
    case Content::checkpoint:
        return "a checkpoint";
    case Content::model:
        return "a model";
    case Content::quantised:
        return "an int8 model";
    case Content::outputs:
        return "a file of outputs";
    case Content::unknown:
        break;
    }
    return "a file of this program";
}

std::string remedy_for(Content content) {
    switch (content) {
    case Content::checkpoint:
        return "Use another checkpoint of the run, or copy the file back from a backup";
    case Content::model:
        return "It is a model, such as best.h5: use a checkpoint of the run, or copy the file back "
               "from a backup";
    case Content::quantised:
        return "It is an int8 model: make it again with lockstep checkpoint quantise, or copy the "
               "file back from a backup";
    case Content::outputs:
        return "It is a file of outputs: write it again with lockstep evaluate --outputs, or copy "
               "the file back from a backup";
    case Content::unknown:
        break;
    }
    return "Copy the file again from its source, or create the file again";
}

Error not_a_checkpoint(std::filesystem::path const& path, std::string const& kind,
                       std::string const& use) {
    return {
        ExitCode::data,
        {concat(path.string(), " is not a checkpoint"), concat("it ", kind),
         concat("Name a checkpoint (RUN/checkpoints/step-….h5)", use.empty() ? "" : ". ", use)}};
}

Error no_model_but_outputs(std::filesystem::path const& path) {
    return {ExitCode::data,
            {concat(path.string(), " holds no model"), "it is a file of outputs",
             "Name the checkpoint or best.h5 of the model. To learn from a file of outputs, set "
             "distill.outputs to that file"}};
}

} // namespace lockstep::checkpoint
