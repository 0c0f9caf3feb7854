#pragma once

#include <optional>
#include <string>
#include <vector>

namespace baton::protocol::command_line {

struct OptionText {
  std::vector<std::string> names{};  // "--http-port", "-c"; empty: an argument by place
  std::string value{};               // what stands for its value; empty: none is taken
  std::string help{};
  std::string fallback{};  // when it is not given; empty: none, or said in `help`
  bool required = false;
};

// A command with what may follow it.
struct CommandTree {
  std::string name{};
  std::string help{};
  std::string footer{};  // such as its exit statuses
  std::vector<OptionText> options{};
  std::vector<CommandTree> commands{};
};

// A completion script for bash, zsh or fish; nothing for another shell.
[[nodiscard]] std::optional<std::string> completion_script(const CommandTree& root,
                                                           const std::string& shell);
// docs/reference/command-line.md.
[[nodiscard]] std::string command_line_reference(const CommandTree& root);
// docs/reference/baton.1: a page of section 1 in roff's man macros.
[[nodiscard]] std::string man_page(const CommandTree& root, const std::string& version);

}  // namespace baton::protocol::command_line
