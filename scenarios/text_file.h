// Small text files, whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spes::scenarios {

// The file's bytes. Throws std::invalid_argument with one line when it is a folder or cannot be
// read.
std::string ReadText(const std::string& path);

// Its lines without their ends (LF or CRLF) and without a byte-order mark; views into `text`. What
// follows the last line end is a line only when it holds something.
std::vector<std::string_view> Lines(std::string_view text);

// Without blanks and tabs at both ends.
std::string_view Trimmed(std::string_view text);

}  // namespace spes::scenarios
