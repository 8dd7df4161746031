// dcrl completion: a script for the user's shell, which asks `dcrl complete` (complete.h) for everything.
#include "args.h"
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl completion bash|zsh|fish\n"
    "\n"
    "Prints a script with which the shell completes commands, flags, agents, environments and "
    "presets.\n"
    "An installed dcrl brings them along; else:\n"
    "  bash   source <(dcrl completion bash)                in ~/.bashrc\n"
    "  zsh    source <(dcrl completion zsh)                 in ~/.zshrc, after compinit\n"
    "  fish   dcrl completion fish | source                 in ~/.config/fish/config.fish\n"
    "\n"
    "example: dcrl completion bash > ~/.local/share/bash-completion/completions/dcrl\n";

static const dc_option no_flags[] = {{0}};

static const char bash[] =
    "# dcrl: completion for bash, by `dcrl completion bash`.\n"
    "_dcrl() {\n"
    "    local IFS=$'\\n' words\n"
    "    words=$(\"${COMP_WORDS[0]}\" complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null | cut "
    "-f 1)\n"
    "    COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
    "}\n"
    "complete -o default -F _dcrl dcrl\n";

static const char zsh[] =
    "#compdef dcrl\n"
    "# dcrl: completion for zsh, by `dcrl completion zsh`.\n"
    "_dcrl() {\n"
    "    local line; local -a found\n"
    "    for line in ${(f)\"$(\"${words[1]}\" complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"}; "
    "do\n"
    "        found+=(\"${${line%%$'\\t'*}//:/\\\\:}${${(M)line:#*$'\\t'*}:+:${line#*$'\\t'}}\")\n"
    "    done\n"
    "    (( $#found )) && _describe dcrl found || _files\n"
    "}\n"
    "if [ \"${funcstack[1]}\" = _dcrl ]; then _dcrl \"$@\"; else compdef _dcrl dcrl; fi\n";

static const char fish[] = "# dcrl: completion for fish, by `dcrl completion fish`.\n"
                           "function __dcrl\n"
                           "    set -l words (commandline -opc) (commandline -ct)\n"
                           "    $words[1] complete $words[2..-1] 2>/dev/null\n"
                           "end\n"
                           "complete -c dcrl -a '(__dcrl)'\n";

dc_status cmd_completion(int argc, char **argv) {
    static const struct {
        const char *name, *script;
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    char config;
    cli_args args = {.usage = usage, .flags = no_flags, .config = &config, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    for (int i = 0; args.word_count == 1 && i < 3; i++)
        if (!strcmp(args.words[0], shells[i].name)) return fputs(shells[i].script, stdout), DC_OK;
    return dc_fail(DC_USAGE, "dcrl completion bash|zsh|fish", "one word says which shell (%s)",
                   args.word_count ? args.words[0] : "none");
}
