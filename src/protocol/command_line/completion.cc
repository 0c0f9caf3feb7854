#include "protocol/command_line/command_tree.h"

namespace baton::protocol::command_line {
namespace {

std::vector<std::string> long_options(const CommandTree& command) {
  std::vector<std::string> out;
  for (const OptionText& option : command.options) {
    for (const std::string& name : option.names) {
      if (name.starts_with("--")) out.push_back(name);
    }
  }
  return out;
}

// What may follow a command: a command within it brings its own options.
std::string words(const CommandTree& command, bool of_children) {
  std::string out;
  for (const CommandTree& child : command.commands) out += child.name + " ";
  for (const std::string& option : long_options(command)) out += option + " ";
  for (const CommandTree& child : command.commands) {
    for (const std::string& option : of_children ? long_options(child) : std::vector<std::string>())
      out += option + " ";
  }
  if (!out.empty()) out.pop_back();
  return out;
}

// bash, and zsh through its bash emulation: the words behind the first command that was typed.
std::string bash_script(const CommandTree& root) {
  std::string out =
      "_baton() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" command=\"\" word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    [[ $word != -* ]] && { command=$word; break; }\n"
      "  done\n"
      "  local words\n"
      "  case $command in\n";
  for (const CommandTree& child : root.commands) {
    out += "    " + child.name + ") words=\"" + words(child, true) + "\" ;;\n";
  }
  out += "    *) words=\"" + words(root, false) +
         "\" ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [[ ${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "}\n"
         "complete -o filenames -F _baton baton\n";
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_script(const CommandTree& root) {
  std::string out;
  for (const CommandTree& child : root.commands) {
    out += "complete -c baton -n __fish_use_subcommand -f -a " + child.name + " -d " +
           quoted(child.help) + "\n";
    for (const std::string& option : long_options(child)) {
      out += "complete -c baton -n '__fish_seen_subcommand_from " + child.name + "' -l " +
             option.substr(2) + "\n";
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> completion_script(const CommandTree& root, const std::string& shell) {
  if (shell == "bash") return bash_script(root);
  if (shell == "zsh") return "autoload -U bashcompinit && bashcompinit\n" + bash_script(root);
  if (shell == "fish") return fish_script(root);
  return std::nullopt;
}

}  // namespace baton::protocol::command_line
