#include "data/format.hpp"

#include "base/file_kind.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "data/checksums.hpp"
#include "data/convert.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>

namespace lockstep::data {

namespace {

[[noreturn]] void refuse(std::filesystem::path const& path, std::string const& why,
                         std::string const& next) {
    throw Error(ExitCode::data, {path.string(), why, next});
}

/// Mean or standard deviation as the file gives it: one for all, or one for each channel.
std::vector<double> moment(h5::File const& file, std::string const& name,
                           h5::Shape const& sample_shape) {
    auto const found = file.number_attribute("/", name);
    if (auto const names = file.attribute_names("/");
        !found && std::ranges::count(names, name) > 0) {
        refuse(file.path(), concat("attribute ", name, " is not a number"),
               "Store mean and std as numbers, one for all or one for each channel");
    }
    auto values = found.value_or(std::vector<double>{});
    if (!fit_channels(values.size(), sample_shape)) {
        auto const channels = sample_shape.empty() ? 1 : sample_shape.front();
        refuse(file.path(),
               concat("attribute ", name, " has ", values.size(), " values, but a sample has ",
                      amount_of(channels, "channel")),
               "Store one value, or one for each channel");
    }
    return values;
}

void require_known_version(h5::File const& file) {
    if (file.text_attribute("/", "format") != format_name) {
        return;
    }
    if (auto const version = file.integer_attribute("/", "version").value_or(format_version);
        version != format_version) {
        refuse(file.path(),
               concat("it is a data set of version ", version, ", and only version ",
                      format_version, " is known"),
               "Use a newer Lockstep, or import the data again");
    }
}

} // namespace

h5::DatasetInfo readable_dataset(h5::File const& file, std::string const& name, Entries entries) {
    require_known_version(file);
    if (!file.exists(name)) {
        if (auto const kind = kind_of_file(file.path()); !kind.name.empty()) {
            refuse(file.path(), concat("it is ", kind.name, ", not a data set"), kind.data);
        }
        auto const format = file.text_attribute("/", "format").value_or("");
        if (file.exists("outputs") && format == "lockstep checkpoint") {
            refuse(file.path(), "it is a file of outputs, not a data set",
                   "Name a data set. To learn from a file of outputs, set distill.outputs to that "
                   "file");
        }
        if (file.exists("quantised") && format == "lockstep model") {
            refuse(file.path(), "it is an int8 model, not a data set",
                   "Name a data set. To evaluate an int8 model, use lockstep evaluate DECK FILE");
        }
        if (format == "lockstep checkpoint" || format == "lockstep model") {
            bool const of_sites = file.exists("record") &&
                                  file.integer_attribute("record", "federated_rounds").has_value();
            refuse(file.path(),
                   concat("it is a ",
                          of_sites ? "global model of a federation"
                                   : format.substr(format.find(' ') + 1),
                          ", not a data set"),
                   "Name a data set. To begin a run with these weights, set model.weights to this "
                   "file");
        }
        if (name == "targets" && file.exists(token_bytes_name)) {
            refuse(file.path(), "it holds texts, which are not cut into samples yet",
                   "Set data.sequence to the number of tokens in a sample, for example 256");
        }
        refuse(file.path(),
               concat("it has no dataset named ", name, ", only ", joined(file.names(), ", ")),
               "Name datasets of this file. A deck names them in data.inputs and data.targets, and "
               "an import names them with --inputs and --targets");
    }
    auto info = file.info(name);
    if (!info.readable_as || (info.shape.empty() && entries == Entries::samples)) {
        refuse(file.path(),
               concat("the dataset named ", name, " does not hold plain numbers per sample"),
               "Store this dataset as whole or floating-point numbers, with samples as the first "
               "dimension");
    }
    if (h5::elements(info.shape) == 0) {
        static_cast<void>(
            file.origin(name)); // a view of blocks that are not there has none, either
        refuse(file.path(), concat("the dataset named ", name, " holds no samples"),
               "Name another file");
    }
    auto const samples = entries == Entries::one ? 1 : info.shape.front();
    if (auto const values = h5::elements(info.shape) / samples; values > max_sample_values) {
        refuse(file.path(),
               concat("a sample of the dataset named ", name, " has ", values,
                      " values, but at most ", max_sample_values, " are supported"),
               "Store the samples along the first dimension, and cut larger ones into parts");
    }
    static_cast<void>(file.origin(name)); // before memory is taken for its samples
    return info;
}

Moments read_moments(h5::File const& file, h5::Shape const& sample_shape) {
    Moments moments{moment(file, "mean", sample_shape), moment(file, "std", sample_shape)};
    auto const& [mean, std] = moments;
    bool const finite =
        std::all_of(mean.begin(), mean.end(), [](double value) { return std::isfinite(value); });
    bool const positive = std::all_of(
        std.begin(), std.end(), [](double value) { return std::isfinite(value) && value > 0; });
    if (mean.size() != std.size() || !finite || !positive) {
        refuse(file.path(),
               mean.empty() != std.empty()
                   ? concat("it has attribute ", mean.empty() ? "std" : "mean",
                            " without attribute ", mean.empty() ? "mean" : "std")
               : mean.size() != std.size()
                   ? concat("attribute mean has ", amount_of(mean.size(), "value"),
                            ", but attribute std has ", std.size())
                   : "a value of attribute mean or std is not finite, or one of std is not above 0",
               "Store both attributes or neither. Both need the same number of values, all values "
               "must be finite, and those of std must be above 0");
    }
    return moments;
}

void require_scales(std::filesystem::path const& path, h5::Type type,
                    std::vector<double> const& mean, std::vector<double> const& std) {
    if (!are_scales(type, mean, std)) {
        refuse(path,
               "a value of attribute mean or std is out of the range of float32, in which its "
               "inputs are scaled",
               "Store its inputs as float64, or in other units");
    }
}

std::string undivided_text(h5::Type type, std::vector<double> const& mean,
                           std::string const& whose) {
    auto const largest = std::ranges::max_element(mean);
    return type != h5::Type::u8 || largest == mean.end() || *largest <= 1
               ? std::string()
               : concat("warning: mean = ", *largest, " in ", whose,
                        " is outside the inputs, which are divided by 255 first: divide mean and "
                        "std by 255");
}

namespace {

/// Empty where the file does not say.
std::vector<std::uint8_t> read_token_bytes(h5::File const& file) {
    if (!file.exists(token_bytes_name)) {
        return {};
    }
    auto const shape = readable_dataset(file, token_bytes_name).shape;
    if (shape.size() != 1) {
        throw Error(ExitCode::data,
                    {concat("dataset ", token_bytes_name, " of ", file.path().string()),
                     "this dataset does not hold one number for each token",
                     "Import the texts again"});
    }
    std::vector<std::uint8_t> bytes(shape.front());
    file.read(token_bytes_name, h5::Type::u8, bytes);
    return bytes;
}

} // namespace

Facts read_facts(h5::File const& file, h5::Shape const& sample_shape, bool of_tokens) {
    Facts facts{.scale_known = true};
    std::tie(facts.mean, facts.std) = read_moments(file, sample_shape);
    auto const texts = [&](char const* name) {
        return file.texts_attribute("/", name).value_or(std::vector<std::string>{});
    };
    facts.classes = texts("classes");
    facts.columns = texts(columns_name);
    bool const of_columns = !sample_shape.empty() && sample_shape.back() == facts.columns.size() &&
                            std::ranges::all_of(facts.columns, is_utf8);
    if (!of_columns) { // an attribute of another program's
        facts.columns.clear();
    }
    if (auto const rate = file.number_attribute("/", sample_rate_name); rate && rate->size() == 1) {
        facts.sample_rate = rate->front();
    }
    if (of_tokens) {
        facts.token_bytes = read_token_bytes(file);
        if (!facts.token_bytes.empty() && file.exists(tokenizer_name)) {
            facts.tokenizer = file.read_text(tokenizer_name);
        }
    }
    return facts;
}

Error wrong_mark(std::string which) {
    return {ExitCode::data,
            {std::move(which),
             "data.mask takes only 1 (the token is learnt) and 0 (it is left out of the loss)",
             "Correct the dataset, or import the texts with lockstep data import text --prompt "
             "KEY"}};
}

std::vector<std::string> unapplied_attributes(h5::File const& file, std::string const& name) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN(); // left out, or never equal
    std::vector<std::string> found;
    for (auto const& [attribute, neutral] :
         {std::pair{"scale_factor", 1.0}, std::pair{"add_offset", 0.0},
          std::pair{"_FillValue", none}, std::pair{"missing_value", none}}) {
        auto const values = file.number_attribute(name, attribute);
        if (values && !values->empty() && values->front() != neutral &&
            !std::isnan(values->front())) {
            found.push_back(concat(attribute, " = ", values->front()));
        }
    }
    return found;
}

std::string unwritten_text(std::string const& name, std::filesystem::path const& path) {
    return concat("warning: values of dataset ", name, " of ", path.string(),
                  " were never written: HDF5 returns the fill value instead");
}

ByteRange bytes_in_file(h5::File const& file, h5::DatasetInfo const& info,
                        std::uint64_t file_bytes) {
    auto const require = [&](bool holds) {
        if (!holds) {
            refuse(file.path(),
                   concat("dataset ", info.path, " is not one uncompressed block within the file"),
                   "Import the data again, because the file is damaged or another program has "
                   "rewritten the file");
        }
    };
    require(info.type && info.offset && *info.offset <= file_bytes);
    // Extent by extent, since a damaged shape can be of any size.
    auto const max = file_bytes - *info.offset;
    std::uint64_t bytes = h5::size_of(*info.type);
    for (auto const extent : info.shape) {
        require(extent == 0 || bytes <= max / extent);
        bytes *= extent;
    }
    return {*info.offset, bytes};
}

std::vector<std::int64_t> read_targets(h5::File const& file, std::string const& name,
                                       std::uint64_t samples) {
    auto const info = readable_dataset(file, name);
    auto const type = *info.readable_as;
    if (h5::elements(info.shape) != info.shape.front() || !is_whole(type)) {
        refuse(file.path(),
               concat("the dataset named ", name, " does not hold one whole number per sample"),
               "Store classes or groups as integers, one per sample");
    }
    if (info.shape.front() != samples) {
        refuse(file.path(),
               concat("it has ", amount_of(samples, "sample"), ", but ", info.shape.front(),
                      " entries in dataset ", name),
               "Store one entry per sample");
    }
    std::vector<std::int64_t> targets(samples);
    // HDF5 converts, and would make 2^63 - 1 of all larger ones.
    file.read(name, type == h5::Type::u64 ? type : h5::Type::i64,
              std::as_writable_bytes(std::span(targets)));
    return targets;
}

std::vector<std::string> complete_names(std::vector<std::string> given,
                                        std::span<std::int64_t const> targets,
                                        std::filesystem::path const& path, ExitCode at_fault,
                                        h5::Type type) {
    auto const wrong = std::ranges::find_if(
        targets, [](std::int64_t label) { return label < 0 || label >= max_classes; });
    if (wrong != targets.end()) {
        refuse(path,
               concat("label ", whole_text(type, *wrong), " of sample ", wrong - targets.begin(),
                      " is not from 0 to ", max_classes - 1),
               "Correct the labels");
    }
    auto const needed =
        targets.empty() ? 0 : static_cast<std::size_t>(*std::ranges::max_element(targets)) + 1;
    if (!given.empty() && given.size() < needed) {
        throw Error(at_fault,
                    {concat(amount_of(given.size(), "class name"), " for ", needed, " classes"),
                     concat("the labels of ", path.string(), " go up to ", needed - 1),
                     concat("Name ", needed, " classes")});
    }
    while (given.size() < needed) {
        given.push_back(std::to_string(given.size()));
    }
    return given;
}

std::string whole_text(h5::Type type, std::int64_t number) {
    return type == h5::Type::u64 ? concat(static_cast<std::uint64_t>(number)) : concat(number);
}

} // namespace lockstep::data
