#include "import/text_source.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "data/format.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"
#include "text/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

#include "documents.hpp"
#include "listed_source.hpp"

namespace lockstep::import {

namespace {

/// The text of tokenizer.json, or that in a data set.
std::string tokenizer_in(std::filesystem::path const& path) {
    if (!is_hdf5(path)) {
        return read_text(path);
    }
    auto const file = h5::File::open(path);
    if (!file.exists(data::tokenizer_name)) {
        throw Error(ExitCode::data,
                    {path.string(), "it is an HDF5 file without a tokenizer",
                     "Name a data set of texts, or a file in the format tokenizer.json"});
    }
    return file.read_text(data::tokenizer_name);
}

class TextSource : public ImportSource {
  public:
    explicit TextSource(TextImport const& options)
        : documents_(
              {options.source, options.endings, options.text, options.prompt, options.split_by}),
          tokenizer_(options.tokenizer.empty()
                         ? learnt(options.vocabulary, options.meanwhile)
                         : text::Tokenizer::of_json(tokenizer_in(options.tokenizer),
                                                    options.tokenizer.string())),
          wanted_(options.tokenizer.empty() ? options.vocabulary : 0) {
        bool const narrow = tokenizer_.tokens() <= 1 << 16;
        form_.fields = {{"inputs", narrow ? h5::Type::u16 : h5::Type::u32, {}, true}};
        if (!options.prompt.empty()) {
            form_.fields.push_back({data::learnt_name, h5::Type::u8, {}, true});
        }
        form_.long_texts = {{data::tokenizer_name, tokenizer_.json()}};
        form_.tables = {{data::token_bytes_name, tokenizer_.lengths()}};
        if (auto const end = tokenizer_.end_of_text()) {
            form_.numbers = {{data::end_of_text_name, {static_cast<double>(*end)}}};
        }
    }

    std::string identity() const override {
        return concat("text ", hex(hash64(tokenizer_.json())), "\n", documents_.identity());
    }
    ImportForm const& form() const override { return form_; }
    std::int64_t items() const override { return documents_.count(); }
    std::string name(std::int64_t item) const override { return documents_.name(item); }
    std::string origin(std::int64_t item) const override { return documents_.origin(item); }
    std::string group(std::int64_t item) const override { return documents_.group(item); }
    std::string set(std::int64_t item) const override { return documents_.set(item); }
    std::vector<std::string> remarks() const override {
        auto lines = documents_.remarks();
        if (tokenizer_.tokens() < wanted_) {
            lines.push_back(
                concat("the vocabulary has ", count_text(tokenizer_.tokens(), "token"),
                       " instead of the ", count_text(wanted_),
                       " of --vocabulary, since the texts have no more pairs to merge"));
        }
        return lines;
    }
    std::int64_t items_at_once() const override {
        auto const each = std::max<std::uint64_t>(
            documents_.bytes() / static_cast<std::uint64_t>(std::max<std::int64_t>(items(), 1)), 1);
        return static_cast<std::int64_t>(
            std::clamp<std::uint64_t>(bytes_at_once / each, 1, max_items_at_once));
    }

    std::string read(std::int64_t item, std::function<void(Sample&&)> const& sink) const override {
        auto const document = documents_.read(item);
        // Apart, so that no token belongs to both.
        auto tokens = tokenizer_.encode(document.prompt, name(item));
        auto const context = tokens.size();
        auto const text = tokenizer_.encode(document.text, name(item));
        tokens.insert(tokens.end(), text.begin(), text.end());
        if (auto const end = tokenizer_.end_of_text()) {
            tokens.push_back(*end);
        }
        Sample sample;
        if (form_.fields.front().type == h5::Type::u16) {
            std::vector<std::uint16_t> const narrow(tokens.begin(), tokens.end());
            sample.fields.push_back(bytes_of(narrow));
        } else {
            sample.fields.push_back(bytes_of(tokens));
        }
        if (form_.fields.size() > 1) {
            std::vector<std::uint8_t> learnt(tokens.size(), 1);
            std::fill_n(learnt.begin(), context, std::uint8_t{0});
            sample.fields.push_back(bytes_of(learnt));
        }
        sink(std::move(sample));
        return {};
    }

  private:
    static constexpr std::uint64_t max_items_at_once = 4096;
    /// The size of the texts that a vocabulary is learnt from: more changes it hardly.
    static constexpr std::uint64_t max_learnt_bytes = std::uint64_t{64} << 20;

    /// From all documents, or from every so many of them.
    text::Tokenizer learnt(std::int64_t vocabulary, std::function<void()> const& meanwhile) const {
        auto const step = static_cast<std::int64_t>(documents_.bytes() / max_learnt_bytes + 1);
        auto const visit = [&](auto const& use) {
            std::uint64_t bytes = 0;
            for (std::int64_t item = 0; item < documents_.count() && bytes < max_learnt_bytes;
                 item += step) {
                auto const document = learnable(item);
                for (auto const* const each : {&document.prompt, &document.text}) {
                    auto const part = beginning_of(*each, max_learnt_bytes - bytes);
                    bytes += part.size();
                    use(part);
                }
            }
        };
        return text::Tokenizer::learnt(vocabulary, visit, meanwhile);
    }

    /// Nothing of a document that the import will refuse, or skip, by its name.
    Document learnable(std::int64_t item) const {
        try {
            auto document = documents_.read(item);
            static_cast<void>(decoded(document.prompt, name(item)));
            static_cast<void>(decoded(document.text, name(item)));
            return document;
        } catch (Error const& error) {
            if (error.code() != ExitCode::data) {
                throw;
            }
            return {};
        }
    }

    /// At most so many bytes, up to the end of a line.
    static std::string_view beginning_of(std::string_view document, std::uint64_t bytes) {
        if (document.size() <= bytes) {
            return document;
        }
        auto const end = document.rfind('\n', bytes);
        return document.substr(0, end == std::string_view::npos ? 0 : end);
    }

    Documents documents_;
    text::Tokenizer tokenizer_;
    std::int64_t wanted_; ///< tokens of one that is learnt
    ImportForm form_;
};

} // namespace

std::unique_ptr<ImportSource> text_source(TextImport const& options) {
    return std::make_unique<TextSource>(options);
}

} // namespace lockstep::import
