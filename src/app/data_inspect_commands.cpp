#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/escaped.hpp"
#include "base/text.hpp"
#include "data/inspect.hpp"
#include "data/look_through.hpp"
#include "data/sample_axes.hpp"
#include "data/verify.hpp"
#include "h5/element_type.hpp"

#include <iostream>

#include "commands.hpp"

namespace lockstep::app {

namespace {

Options inspect_options(data::DatasetOptions& named, std::string action, std::string about) {
    return {.command = "lockstep data " + std::move(action),
            .positions = {"FILE...", 1, 100000},
            .about = std::move(about),
            .rows = {option::text("--inputs NAMES", "names of the input datasets", named.inputs),
                     option::text("--targets NAMES", "names of the target datasets", named.targets),
                     option::flag("--sample-per-file", "read each file as one sample",
                                  named.sample_per_file),
                     option::whole("--sequence N", "tokens per sample, as in data.sequence",
                                   named.sequence, {.min = 0})}};
}

Options data_info_options(data::DatasetOptions& named) {
    return inspect_options(
        named, "info",
        "Shows the contents of each file: samples, datasets, statistics and classes.");
}

Options data_verify_options(data::DatasetOptions& named) {
    auto options = inspect_options(
        named, "verify",
        "Recomputes all checksums, reads every sample, and counts the values that are not finite. "
        "Exits with 65 if a value is not finite or a block has changed. Files that were not made "
        "by lockstep data import have no checksums.");
    options.rows.push_back(option::text(
        "--mask NAME", "name of a mask, as in data.mask: its values must be 0 or 1", named.mask));
    return options;
}

/// Files and the names of what is in them.
std::vector<data::DatasetOptions> named_files(Options (*table)(data::DatasetOptions&),
                                              Invocation const& invocation) {
    data::DatasetOptions named;
    std::vector<data::DatasetOptions> files;
    for (auto const& file : table(named).parse(invocation.arguments).positions) {
        files.push_back(named);
        files.back().files = file;
        files.back() = data::for_texts(files.back());
    }
    return files;
}

/// Where the channels of pictures, clips or volumes are, unless they are the first dimension.
void print_layout(data::FieldInfo const& input, std::vector<double> const& mean) {
    auto const named = data::axis_of_means({.inputs = {input}, .mean = mean});
    auto const axis = named && input.shape.size() > 2 ? named : data::channel_axis(input.shape);
    if (axis && *axis > 0 && !input.ragged) {
        std::cout << "  dimension " << *axis << " of " << escaped_line(input.name)
                  << " looks like channels, which models of pictures expect as the first dimension "
                  << (*axis + 1 == input.shape.size()
                          ? "unless model.layout = channels-last\n"
                          : "of a sample, or with model.layout = channels-last as the last\n");
    }
}

void print_sources(data::DataInfo const& info) {
    if (!info.first_source.empty()) {
        std::cout << "  sources: from " << escaped_line(info.first_source) << " to "
                  << escaped_line(info.last_source) << "\n";
    }
}

void print(data::DataInfo const& info) {
    std::cout << info.path.string() << ": " << bytes_text(info.bytes) << ", "
              << (info.ours ? "a Lockstep data set" : "written by another program")
              << (info.checksums ? ", with checksums" : ", without checksums") << "\n  ";
    if (info.tokens > 0) { // samples are what data.sequence makes of them
        std::cout << "texts: " << count_text(info.tokens) << " tokens in "
                  << count_text(info.documents, "document") << ", with a vocabulary of "
                  << count_text(info.fields.front().vocabulary)
                  << "; data.sequence cuts them into samples\n";
        print_sources(info);
        return;
    }
    std::cout << count_text(info.samples, "sample") << "\n";
    for (std::size_t f = 0; f < info.fields.size(); ++f) {
        auto const& field = info.fields[f];
        std::cout << "  " << escaped_line(field.name) << ": ["
                  << (field.ragged ? "any number of rows, " : "");
        for (std::size_t i = 0; i < field.shape.size(); ++i) {
            std::cout << (i == 0 ? "" : ", ") << field.shape[i];
        }
        std::cout << "] " << h5::name_of(field.type) << (info.places[f].empty() ? "" : ", ")
                  << escaped_line(info.places[f]) << "\n";
    }
    print_sources(info);
    print_layout(info.fields.front(), info.mean);
    for (std::size_t i = 0; i < info.mean.size(); ++i) {
        std::cout << "  mean " << fixed(info.mean[i], 4) << ", standard deviation "
                  << fixed(info.std[i], 4) << "\n";
    }
    for (std::size_t i = 0; i < info.class_names.size(); ++i) {
        std::cout << "  class " << i << " " << escaped_line(info.class_names[i]);
        if (i < info.class_counts.size()) {
            std::cout << ": " << count_text(info.class_counts[i]);
        }
        std::cout << "\n";
    }
}

/// Whether all is well: the checksums of the file, or of those that it leads to, and every sample.
bool verify(data::DatasetOptions const& options) {
    bool checksums = false;
    bool damaged = false;
    for (auto const& path : data::files_of(options)) {
        if (path != options.files) {
            std::cout << options.files << ": some samples are stored in " << path.string() << "\n";
        }
        if (!data::has_checksums(path)) {
            continue;
        }
        checksums = true;
        if (auto const added = data::datasets_added_to(path); !added.empty()) {
            std::cout << path.string() << ": datasets added since the import, without checksums: "
                      << escaped_line(joined(added, ", ")) << "\n";
        }
        for (auto const& block : data::verify(path)) {
            std::cout << path.string() << ": " << escaped_line(block.dataset)
                      << " has changed in bytes " << block.first_byte << " to " << block.last_byte
                      << "\n";
            damaged = true;
        }
    }
    if (!damaged) {
        for (auto const& warning : data::warnings_of(options)) {
            std::cout << escaped_line(warning) << "\n";
        }
        data::look_through_mask(data::alone(options));
        data::look_through_sources(options);
    }
    auto const odd = damaged ? std::vector<data::NotFinite>{} : data::look_through(options);
    for (auto const& field : odd) {
        std::cout << options.files << ": " << count_text(field.count, "value") << " of "
                  << escaped_line(field.dataset) << (field.count == 1 ? " is" : " are")
                  << " not finite, in " << count_text(field.samples, "sample")
                  << "; the first is sample " << field.first << "\n";
    }
    std::cout << options.files
              << (damaged        ? ": damaged\n"
                  : !odd.empty() ? ": not fit for training\n"
                  : checksums    ? ": all checksums are correct\n"
                                 : ": every sample can be read; the data set has no checksums\n");
    return !damaged && odd.empty();
}

} // namespace

ExitCode data_info_command(Invocation const& invocation) {
    for (auto const& file : named_files(data_info_options, invocation)) {
        print(data::describe(file));
    }
    return ExitCode::ok;
}

std::string data_info_help(HelpWords const&) {
    return help_of(data_info_options);
}

ExitCode data_verify_command(Invocation const& invocation) {
    bool whole = true;
    for (auto const& file : named_files(data_verify_options, invocation)) {
        whole = verify(file) && whole;
    }
    return whole ? ExitCode::ok : ExitCode::data;
}

std::string data_verify_help(HelpWords const&) {
    return help_of(data_verify_options);
}

} // namespace lockstep::app
