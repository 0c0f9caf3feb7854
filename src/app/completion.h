#pragma once

#include <optional>
#include <string>
#include <vector>

namespace baton::app {

// A command with what may follow it.
struct CommandTree {
  std::string name;
  std::string help;
  std::vector<std::string> options;  // "--http-port"
  std::vector<CommandTree> commands;
};

// A completion script for bash, zsh or fish; nothing for another shell.
[[nodiscard]] std::optional<std::string> completion_script(const CommandTree& root,
                                                           const std::string& shell);

}  // namespace baton::app
