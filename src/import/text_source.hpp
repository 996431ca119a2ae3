#pragma once

#include "import/source.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::import {

struct TextImport {
    std::filesystem::path source{};
    std::filesystem::path tokenizer{}; ///< a tokenizer.json; empty: one is learnt
    std::int64_t vocabulary = 8192;    ///< tokens of one that is learnt
    std::vector<std::string> endings = {".txt", ".md", ".rst", ".jsonl"}; ///< of the files
    std::string text = "text"; ///< key of a line of JSON that has the text
    std::string prompt{};      ///< key of the context before the text; empty: none
    std::string split_by{};    ///< empty, or "folder"
    /// Called often while a tokenizer is learnt, which it ends by throwing.
    std::function<void()> meanwhile = [] {};
};

/// Documents as tokens: each file is one, or each line of a .jsonl file. Inputs are ragged u16 or
/// u32, with a token after each document where the tokenizer has one for that; the tokenizer is
/// stored in the file, too. With prompts, a second field says which tokens are learnt: those of the
/// text and the one after it.
std::unique_ptr<ImportSource> text_source(TextImport const& options);

} // namespace lockstep::import
