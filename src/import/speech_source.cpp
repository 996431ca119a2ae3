#include "import/speech_source.hpp"

#include "base/list.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "data/format.hpp"
#include "import/log_mel.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "codec/sound.hpp"
#include "listed_source.hpp"
#include "symbols.hpp"
#include "transcripts.hpp"

namespace lockstep::import {

namespace {

constexpr std::int64_t recordings_at_once = 32;

class SpeechSource : public ListedSource {
  public:
    explicit SpeechSource(SpeechImport const& options) : options_(options) {
        if (options.transcripts.empty()) {
            listing_ = list_files(listing_options());
        } else {
            list_transcripts();
        }
        rate_ = options_.rate;
        if (rate_ == 0) {
            read_first();
        }
        form_.fields = {{"inputs", h5::Type::f32, {}, true}};
        if (!options.unlabelled) {
            form_.fields.push_back({"targets", h5::Type::i64, {}, !options.transcripts.empty()});
        }
        if (!options.raw) {
            mel_.emplace(LogMelOptions{.rate = rate_, .bands = options.bands});
            form_.fields.front().row = {options.bands};
        }
        form_.class_names = listing_.class_names;
        form_.moments = options.unlabelled ? ImportForm::Moments::none // a model has its own
                                           : ImportForm::Moments::one;
        form_.numbers = {{data::sample_rate_name, {static_cast<double>(rate_)}}};
    }

    std::string identity() const override {
        return concat("speech ", options_.raw ? "raw" : "mel ", options_.bands,
                      options_.unlabelled ? " unlabelled" : "", "\n", joined(texts_, "\n"), "\n",
                      options_.words, options_.lowercase, options_.drop, "\n", listing_.identity());
    }
    std::int64_t items_at_once() const override { return recordings_at_once; }

    std::string read(std::int64_t item, std::function<void(Sample&&)> const& sink) const override {
        auto sound = read_sound(entry(item).path);
        if (sound.rate != rate_) {
            refuse(item,
                   concat("its sample rate is ", sound.rate, " Hz, but that of the ",
                          options_.rate > 0 ? "model's recordings" : "first recording", " is ",
                          rate_, " Hz"),
                   "Convert all recordings to one sample rate, for instance with sox");
        }
        if (mel_) {
            if (mel_->frames(sound.values.size()) == 0) {
                refuse(item,
                       concat("it has ", amount_of(sound.values.size(), "value"),
                              ", fewer than a window needs"),
                       "Remove the recording, or skip short recordings with --skip-bad");
            }
            sound.values = (*mel_)(sound.values);
        }
        Sample sample{{bytes_of(sound.values)}, label(item)};
        if (!options_.unlabelled) {
            sample.fields.push_back(
                bytes_of(options_.transcripts.empty() ? std::vector{label(item)} : symbols(item)));
        }
        sink(std::move(sample));
        return sound.channels > 1 ? concat("its ", sound.channels, " channels were averaged")
                                  : std::string();
    }

  private:
    ListingOptions listing_options() const {
        return {options_.source,
                options_.labels,
                options_.split_by,
                {".wav", ".flac", ".ogg", ".aif", ".aiff"},
                {},
                options_.unlabelled,
                options_.more};
    }

    void list_transcripts() {
        auto const transcripts = read_transcripts(
            {options_.transcripts, options_.source, options_.text, options_.split_by});
        listing_.remarks = transcripts.remarks;
        listing_.looked_in = listing_options();
        listing_.root = options_.source;
        std::set<std::string> found;
        std::int64_t silent = 0;
        std::string last;
        for (auto const& transcript : transcripts.rows) {
            listing_.entries.push_back(
                {transcript.file, -1, transcript.group, transcript.set, transcript.line});
            texts_.push_back(transcript.text);
            if (!options_.symbols.empty() && !is_utf8(transcript.text)) {
                continue; // that is told when it is read
            }
            auto const own = cut(transcript.text, transcript.file.string());
            found.insert(own.begin(), own.end());
            if (own.empty()) {
                ++silent;
                last = transcript.file.string();
            }
        }
        if (silent == std::ssize(texts_)) {
            throw Error(ExitCode::data,
                        {options_.transcripts.string(), "no transcript has a symbol",
                         "Write what is said into the transcripts, or remove less of it with "
                         "--drop"});
        }
        if (silent > 0) {
            listing_.remarks.push_back(concat(count_text(silent, "transcript"),
                                              silent == 1 ? " is" : " are",
                                              " empty, such as that of ", last));
        }
        std::vector<std::string> meanings;
        for (auto const& text : texts_) {
            meanings.push_back(concat("transcript \"", text, "\""));
        }
        require_once(listing_, meanings);
        listing_.class_names.assign(found.begin(), found.end());
        if (!options_.symbols.empty()) {
            listing_.class_names =
                options_.words ? list_texts(options_.symbols) : each_of(options_.symbols);
        }
    }

    /// All characters of --symbols: a blank is one, wherever it stands.
    static std::vector<std::string> each_of(std::string const& symbols) {
        std::vector<std::string> each;
        for (auto const point : decoded(symbols, "--symbols")) {
            each.push_back(encoded(point));
        }
        return each;
    }

    std::vector<std::string> cut(std::string const& text, std::string const& from) const {
        return symbols_of(text, {options_.words, options_.lowercase, options_.drop}, from);
    }

    /// The places of a transcript's symbols in the table.
    std::vector<std::int64_t> symbols(std::int64_t item) const {
        auto const& table = listing_.class_names;
        std::vector<std::int64_t> places;
        for (auto const& symbol : cut(texts_[static_cast<std::size_t>(item)], name(item))) {
            auto const at = std::find(table.begin(), table.end(), symbol);
            if (at == table.end()) {
                refuse(item, concat("its transcript has the unknown symbol \"", symbol, "\""),
                       "Add the symbol to --symbols, remove the symbol with --drop, or correct the "
                       "transcript");
            }
            places.push_back(at - table.begin());
        }
        return places;
    }

    /// All are expected to have the rate of the first that can be read.
    void read_first() {
        for (auto const& entry : listing_.entries) {
            try {
                rate_ = read_sound(entry.path).rate;
                return;
            } catch (Error const& error) {
                if (error.code() == ExitCode::unavailable || &entry == &listing_.entries.back()) {
                    throw;
                }
            }
        }
    }

    [[noreturn]] void refuse(std::int64_t item, std::string const& why,
                             std::string const& next) const {
        throw Error(ExitCode::data, {name(item), why, next});
    }

    SpeechImport options_;
    std::vector<std::string> texts_;
    int rate_ = 0;
    std::optional<LogMel> mel_;
};

} // namespace

std::unique_ptr<ImportSource> speech_source(SpeechImport const& options) {
    return std::make_unique<SpeechSource>(options);
}

} // namespace lockstep::import
