#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"
#include "model_files/generate_options.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace lockstep::train {

/// Continues a text with the model of a file, token by token, until it has the requested number of
/// tokens more, or the model ends it. The tokenizer is that of the model's training set. Each token
/// is drawn by a number that depends only on the seed and the token's position. Not collective.
///
/// `say` is called with the text, in parts of whole characters; special tokens are left out. `tell`
/// is called with remarks for the user
/// Throws   Error 64 where the deck's model does not continue texts, 65 where its training set held
///          no tokenizer; as `load_weights` and `open_model_of`
void generate(config::Deck const& deck, checkpoint::VerifiedFile const& file,
              GenerateOptions const& options, std::function<void(std::string_view)> const& say,
              std::function<void(std::string const&)> const& tell);

} // namespace lockstep::train
