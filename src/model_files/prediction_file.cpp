#include "model_files/prediction_file.hpp"

#include "base/escaped.hpp"
#include "base/file.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace lockstep::train {

namespace {

using task::Predicts;

/// The shortest text that gives the number back.
std::string number_text(float value) {
    std::array<char, 32> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

/// A field of RFC 4180.
std::string quoted(std::string const& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string field = "\"";
    for (char const letter : text) {
        field += letter == '"' ? std::string("\"\"") : std::string(1, letter);
    }
    return field + "\"";
}

/// The numbers of one sample.
std::span<float const> row_of(task::Prediction const& batch, std::int64_t sample) {
    auto const width = batch.numbers.size(1);
    return {batch.numbers.const_data_ptr<float>() + sample * width,
            static_cast<std::size_t>(width)};
}

std::int64_t samples_of(task::Prediction const& batch) {
    return batch.numbers.defined() ? batch.numbers.size(0) : std::ssize(batch.texts);
}

std::string name_of(PredictionForm const& form, std::size_t at) {
    return at < form.names.size() ? form.names[at] : std::to_string(at);
}

/// The names of the numbers, of which a name may stand for a class or a value.
std::string value_name(PredictionForm const& form, std::size_t at, std::size_t width) {
    return form.names.size() == width ? form.names[at]
           : width == 1               ? std::string("value")
                                      : concat("value", at);
}

/// A file that is written under a temporary name.
class TextFile : public PredictionFile {
  public:
    TextFile(std::filesystem::path path, PredictionForm form)
        : path_(std::move(path)), form_(std::move(form)) {}

    void append(std::string const& rows, std::vector<std::int64_t> const& shape) override {
        if (!partial_) {
            partial_.emplace(partial_path(path_));
            file_.emplace(File::create_new(partial_->path()));
            file_->append_text(head(shape.empty() ? 0 : static_cast<std::size_t>(shape.front())));
        }
        file_->append_text(rows);
    }

    void close() override {
        file_->sync();
        file_.reset();
        partial_->rename(path_);
    }

  protected:
    PredictionForm const& form() const { return form_; }

  private:
    /// What stands before the rows; a sample has `width` numbers.
    virtual std::string head(std::size_t width) const = 0;

    std::filesystem::path path_;
    PredictionForm form_;
    std::optional<PartialFile> partial_;
    std::optional<File> file_;
};

/// RFC 4180 with a line of names: sample, source where it is known, then class, probability
/// and the probability of each class; or the values; or the text.
class CsvFile : public TextFile {
  public:
    using TextFile::TextFile;

    std::string rows(std::int64_t first, task::Prediction const& batch) const override {
        std::string text;
        for (std::int64_t i = 0; i < samples_of(batch); ++i) {
            text += std::to_string(first + i);
            if (form().source) {
                text += concat(",", quoted(form().source(first + i)));
            }
            if (form().predicts == Predicts::transcripts) {
                text += concat(",", quoted(batch.texts[static_cast<std::size_t>(i)]));
            } else {
                auto const row = row_of(batch, i);
                if (form().predicts == Predicts::classes) {
                    auto const best = std::ranges::max_element(row);
                    auto const at = static_cast<std::size_t>(best - row.begin());
                    text += concat(",", quoted(name_of(form(), at)), ",", number_text(*best));
                }
                for (auto const value : row) {
                    text += concat(",", number_text(value));
                }
            }
            text += "\n";
        }
        return text;
    }

  private:
    std::string head(std::size_t width) const override {
        std::string text = form().source ? "sample,source" : "sample";
        if (form().predicts == Predicts::transcripts) {
            return text + ",text\n";
        }
        if (form().predicts == Predicts::classes) {
            text += ",class,probability";
        }
        for (std::size_t at = 0; at < width; ++at) {
            text += concat(",", quoted(form().predicts == Predicts::classes
                                           ? name_of(form(), at)
                                           : value_name(form(), at, width)));
        }
        return text + "\n";
    }
};

/// One JSON object a line: sample, source, and class, probability and probabilities by class; or
/// values by name; or text. What is not finite is null.
class JsonFile : public TextFile {
  public:
    using TextFile::TextFile;

    std::string rows(std::int64_t first, task::Prediction const& batch) const override {
        std::string text;
        for (std::int64_t i = 0; i < samples_of(batch); ++i) {
            nlohmann::ordered_json line{{"sample", first + i}};
            if (form().source) {
                line["source"] = form().source(first + i);
            }
            if (form().predicts == Predicts::transcripts) {
                line["text"] = batch.texts[static_cast<std::size_t>(i)];
            } else {
                add_numbers(line, row_of(batch, i));
            }
            text += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
        }
        return text;
    }

  private:
    void add_numbers(nlohmann::ordered_json& line, std::span<float const> row) const {
        nlohmann::ordered_json numbers = nlohmann::ordered_json::object();
        bool const classes = form().predicts == Predicts::classes;
        for (std::size_t at = 0; at < row.size(); ++at) {
            numbers[classes ? name_of(form(), at) : value_name(form(), at, row.size())] = row[at];
        }
        if (classes) {
            auto const best = std::ranges::max_element(row);
            line["class"] = name_of(form(), static_cast<std::size_t>(best - row.begin()));
            line["probability"] = *best;
        }
        line[classes ? "probabilities" : "values"] = std::move(numbers);
    }

    std::string head(std::size_t /*width*/) const override { return {}; }
};

/// Datasets: `outputs`, [samples, classes] probabilities or [samples, values], float32; or
/// `predicted`, [samples, places…], the class of each place, int64. Names of classes or values are
/// in an attribute `names`, the samples' sources, one a line, in a dataset `sources`.
class Hdf5File : public PredictionFile {
  public:
    Hdf5File(std::filesystem::path path, PredictionForm form)
        : path_(std::move(path)), form_(std::move(form)) {}

    std::string rows(std::int64_t /*first*/, task::Prediction const& batch) const override {
        auto const& numbers = batch.numbers;
        return {static_cast<char const*>(numbers.const_data_ptr()), numbers.nbytes()};
    }

    void append(std::string const& rows, std::vector<std::int64_t> const& shape) override {
        if (!file_) {
            create(shape);
        }
        appender_->append(std::as_bytes(std::span(rows)));
    }

    void close() override {
        appender_->close();
        appender_.reset();
        file_->close();
        file_.reset();
        partial_->rename(path_);
    }

  private:
    void create(std::vector<std::int64_t> const& shape) {
        partial_.emplace(partial_path(path_));
        file_.emplace(h5::File::create(partial_->path()));
        bool const places = form_.predicts == Predicts::places;
        auto const type = places ? h5::Type::i64 : h5::Type::f32;
        std::string const name = places ? "predicted" : "outputs";
        h5::Shape whole{static_cast<std::uint64_t>(form_.count)};
        whole.insert(whole.end(), shape.begin(), shape.end());
        file_->create_dataset(name, type, whole);
        if (!form_.names.empty()) {
            file_->set_attribute(name, "names", form_.names);
        }
        if (form_.source) {
            std::string lines;
            for (std::int64_t sample = 0; sample < form_.count; ++sample) {
                lines += concat(sample == 0 ? "" : "\n", escaped_line(form_.source(sample)));
            }
            file_->write_text("sources", lines);
        }
        appender_.emplace(*file_, name, type);
    }

    std::filesystem::path path_;
    PredictionForm form_;
    std::optional<PartialFile> partial_;
    std::optional<h5::File> file_;
    std::optional<h5::Appender> appender_;
};

} // namespace

std::unique_ptr<PredictionFile> prediction_file(std::filesystem::path const& path,
                                                PredictionForm form) {
    auto const ending = path.extension().string();
    auto const refuse = [&](std::string const& why, std::string const& next) {
        return Error(ExitCode::usage, {concat("--output ", path.string()), why, next});
    };
    if (ending == ".h5") {
        if (form.predicts == Predicts::transcripts) {
            throw refuse("texts of different lengths are not written to HDF5",
                         "Name a file that ends with .csv or .jsonl");
        }
        return std::make_unique<Hdf5File>(path, std::move(form));
    }
    if (ending != ".csv" && ending != ".jsonl") {
        throw refuse("the ending of the file's name says in which form it is written",
                     "Name a file that ends with .csv, .jsonl or .h5");
    }
    if (form.predicts == Predicts::places) {
        throw refuse("a class for each position of a sample does not fit into a line",
                     "Name a file that ends with .h5");
    }
    if (ending == ".csv") {
        return std::make_unique<CsvFile>(path, std::move(form));
    }
    return std::make_unique<JsonFile>(path, std::move(form));
}

} // namespace lockstep::train
