"""What runs at the plugin's slot: the text of a pipeline, from the options."""


def shared(options):
    skip = f' skip="{options.skip}"' if options.skip else ""
    return f"sanitize-shared{{blocks={options.blocks} dynamic={options.dynamic}{skip}}}"
