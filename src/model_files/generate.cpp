#include "model_files/generate.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "data/format.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "lockstep/nn/decoder.hpp"
#include "model_files/model_changes.hpp"
#include "model_files/saved_model.hpp"
#include "text/tokenizer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::train {

namespace {

text::Tokenizer tokenizer_of(data::Facts const& facts, checkpoint::VerifiedFile const& weights,
                             config::Data const& data) {
    if (!facts.tokenizer.empty()) {
        return text::Tokenizer::of_json(facts.tokenizer, weights.path().string());
    }
    auto const path = data::expand_files(data.train).front();
    auto const file = h5::File::open(path);
    if (!file.exists(data::tokenizer_name)) {
        throw Error(ExitCode::data,
                    {concat(path.string(), " has no tokenizer"),
                     concat("the dataset named ", data::tokenizer_name, " is missing"),
                     "In data.train, name a file imported with: lockstep data import text"});
    }
    return text::Tokenizer::of_json(file.read_text(data::tokenizer_name), path.string());
}

/// A number in [0, 1) for the token at a place.
double drawn(std::int64_t seed, std::int64_t place) {
    auto const key = random_key(static_cast<std::uint64_t>(seed), Stream::generation,
                                {static_cast<std::uint64_t>(place)});
    return static_cast<double>(key >> 11U) * 0x1p-53;
}

/// A token by its scores.
///
/// Shape  scores [vocabulary]
text::Token choose(torch::Tensor const& scores, GenerateOptions const& options,
                   std::int64_t place) {
    auto const host = scores.to(torch::kCPU, torch::kFloat64).contiguous();
    std::span const values(host.const_data_ptr<double>(), static_cast<std::size_t>(host.numel()));
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](auto a, auto b) { return values[a] > values[b]; });
    if (options.temperature == 0) {
        return static_cast<text::Token>(order.front());
    }
    if (options.top_k > 0) {
        order.resize(std::min(order.size(), static_cast<std::size_t>(options.top_k)));
    }
    std::vector<double> sums; // of probabilities, up to a factor
    double sum = 0;
    for (auto const token : order) {
        sum += std::exp((values[token] - values[order.front()]) / options.temperature);
        sums.push_back(sum);
    }
    auto const found = std::ranges::upper_bound(sums, drawn(options.seed, place) * sum);
    auto const at = std::min(static_cast<std::size_t>(found - sums.begin()), order.size() - 1);
    return static_cast<text::Token>(order[at]);
}

/// Bytes at the front that are whole characters; what is no UTF-8 counts as such.
std::size_t whole_characters(std::string_view text) {
    for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
        auto const byte = static_cast<unsigned char>(text[text.size() - back]);
        if (byte >= 0xC0) { // the first of a character
            auto const needed = byte >= 0xF0 ? 4U : byte >= 0xE0 ? 3U : 2U;
            return back < needed ? text.size() - back : text.size();
        }
        if (byte < 0x80) {
            break;
        }
    }
    return text.size();
}

} // namespace

void generate(config::Deck const& deck, checkpoint::VerifiedFile const& file,
              GenerateOptions const& options, std::function<void(std::string_view)> const& say,
              std::function<void(std::string const&)> const& tell) {
    torch::NoGradGuard const no_grad;
    auto const work = open_model_of(deck, file);
    for (auto const& remark : work.remarks) {
        tell(remark);
    }
    auto* const decoder = dynamic_cast<nn::Decoder*>(work.model.get());
    if (decoder == nullptr || deck.task.kind != "language") {
        throw Error(ExitCode::usage,
                    {concat("model.name = ", deck.model.name, ", task.kind = ", deck.task.kind),
                     "only a model that was trained on texts can continue a text",
                     "Use a deck with model.name = transformer and task.kind = language"});
    }
    if (auto const warning = warning_of_model_changes(deck, file); !warning.empty()) {
        tell(warning);
    }
    load_weights(*work.model, file);
    work.model->eval();
    auto const tokenizer = tokenizer_of(work.facts, file, deck.data);
    auto const end = tokenizer.end_of_text();
    auto tokens = tokenizer.encode(options.prompt, "the prompt");
    if (tokens.empty()) { // what a document begins after
        tokens.push_back(end.value_or(0));
    }
    auto const state = decoder->begin();
    auto place = static_cast<std::int64_t>(tokens.size());
    std::string waiting = options.prompt;
    for (std::int64_t left = options.tokens; left > 0; --left, ++place) {
        if (decoder->context() > 0 && place > decoder->context()) {
            break; // the model knows no further positions
        }
        std::vector<std::int64_t> const wide(tokens.begin(), tokens.end());
        auto const token =
            choose(decoder->next(torch::tensor(wide).unsqueeze(0), *state), options, place);
        if (token == end) {
            break;
        }
        tokens = {token};
        waiting += tokenizer.decode(tokens);
        auto const whole = whole_characters(waiting);
        say(std::string_view(waiting).substr(0, whole));
        waiting.erase(0, whole);
    }
    say(waiting);
}

} // namespace lockstep::train
