#include "app/completion.h"

namespace baton::app {
namespace {

std::string words(const CommandTree& command) {
  std::string out;
  for (const CommandTree& child : command.commands) out += child.name + " ";
  for (const std::string& option : command.options) out += option + " ";
  if (!out.empty()) out.pop_back();
  return out;
}

// bash, and zsh through its bash emulation: the words behind the last command that was typed.
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
    out += "    " + child.name + ") words=\"" + words(child) + "\" ;;\n";
  }
  out += "    *) words=\"" + words(root) +
         "\" ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [[ ${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "}\n"
         "complete -o filenames -F _baton baton\n";
  return out;
}

std::string fish_script(const CommandTree& root) {
  std::string out;
  for (const CommandTree& child : root.commands) {
    out += "complete -c baton -n __fish_use_subcommand -f -a " + child.name + " -d '" + child.help +
           "'\n";
    for (const std::string& option : child.options) {
      if (!option.starts_with("--")) continue;
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

}  // namespace baton::app
